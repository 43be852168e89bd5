"""What a person reads: why one test failed, and what a run found out. Text only; nothing here knows pytest."""
