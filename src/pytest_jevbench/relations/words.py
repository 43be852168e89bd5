"""Every wording the relations add to a question: templates, fillers, predicates, off-topic options.

Plain English that a careful reader cannot misread. `{q}`, `{a}`, `{b}`, `{c}` stand for whole questions, `{o}` for
one answer, `{menu}` for all of them, quoted and in order. A template is one variant of its relation; their order is
fixed, because a variant's number is its place here.
"""

from __future__ import annotations

VERBOSITY = (
    "{q} Consider all of the text before you settle on an answer.",
    "What follows is a question about the text, and the text is all you need for it. {q}",
    "Please answer with care; there is no hurry. {q} That is the whole question.",
)

NEGATION = (
    'The right answer to the question "{q}" is "no". Is this statement true?',
    'Would it be right to answer "no" to the question "{q}"?',
    'Is "no" the correct reply to the question "{q}"?',
)

CHOICE_COMPLEMENT = (
    'Question: {q} The only possible answers: {menu}. Is the right one any other than "{o}"?',
    'Exactly one of {menu} answers the question "{q}". Would it be a mistake to pick "{o}"?',
    'The question is: {q} The choice lies between {menu}. Should "{o}" be passed over for another of them?',
)

CHOICE_INDICATOR = (
    'Question: {q} The only possible answers: {menu}. Is "{o}" the right one?',
    'Exactly one of {menu} answers the question "{q}". Would it be correct to pick "{o}"?',
)

SCORE_COMPLEMENT = (
    'Question: {q} The scale, lowest level first: {menu}. Is the right level some other one than "{o}"?',
    'On a scale that rises through {menu}, the question is: {q} Would it be a mistake to answer "{o}"?',
)

SCORE_CUMULATIVE = (
    'Question: {q} The scale, lowest level first: {menu}. Is the right level "{o}" or any level above it?',
    'On a scale that rises through {menu}, the question is: {q} Does the right answer stand at "{o}" or higher?',
)

DE_MORGAN = {
    "and": 'Do these two questions both have the answer "yes"? First: {a} Second: {b}',
    "nand": 'Is it false that these two questions both have the answer "yes"? First: {a} Second: {b}',
    "or_not": 'Is the answer "no" to the first question, or to the second, or to both? First: {a} Second: {b}',
}

CONJUNCTION = (
    (
        'Is the answer "yes" to each of these two questions? Question 1: {a} Question 2: {b}',
        'Is the answer "yes" to one or both of these two questions? Question 1: {a} Question 2: {b}',
    ),
    (
        'Here are two questions about the text: "{a}" and "{b}" Does "yes" answer the one as well as the other?',
        'Here are two questions about the text: "{a}" and "{b}" Does "yes" answer at least one of them?',
    ),
    (
        'Take the questions (A) {a} and (B) {b} Are A and B both to be answered "yes"?',
        'Take the questions (A) {a} and (B) {b} Is A to be answered "yes", or B, or both of them?',
    ),
)

NARY = {
    "all": 'Does every one of these three questions have the answer "yes"? 1. {a} 2. {b} 3. {c}',
    "any": 'Do one or more of these three questions have the answer "yes"? 1. {a} 2. {b} 3. {c}',
}

QUANTIFIERS = {
    "all": 'Three questions about the text: (i) {a} (ii) {b} (iii) {c} Is "yes" the answer to all three?',
    "two": 'Three questions about the text: (i) {a} (ii) {b} (iii) {c} Is "yes" the answer to two or three of them?',
    "any": 'Three questions about the text: (i) {a} (ii) {b} (iii) {c} Is "yes" the answer to one or more of them?',
}

STRONG = 'Does the text prove, beyond any doubt, that the answer to the question "{q}" is "yes"?'
WEAK = 'Does the text at least allow that the answer to the question "{q}" is "yes"?'

PAIR = "Answer two yes/no questions about the text at once. First: {a} Second: {b}"
PAIR_OPTIONS = {
    "00": "no to the first and no to the second",
    "01": "no to the first but yes to the second",
    "10": "yes to the first but no to the second",
    "11": "yes to the first and yes to the second",
}

DIGIT_GROUPS = (
    "Count the numbers written in digits in the text; a figure with a comma or a point inside, like 1,250.75, counts "
    "once. Is the count greater than {k}?"
)
THRESHOLD = "According to the text, is the number of {subject} greater than {k}?"

YES_NO = {"yes": "Yes, that is so", "no": "No, that is not so"}
YES_NO_LEVELS = (
    ("No, that is not so", "Yes, that is so"),
    ('The answer is "no"', 'The answer is "yes"'),
)

MERGED = 'Either "{a}" or "{b}"'
BLOCK = "Any of these: {menu}"
TWIN = "Essentially the same as this: {o}"
BEYOND = 'Even further up this scale than "{o}"'
COARSER = "Either {levels}"
CATCH_ALL = "None of the other answers listed here"

PREDICATES = (
    ("the text contains a question mark", "the text contains no question mark"),
    ("the text contains a digit", "the text contains no digit"),
    ("the text has an even number of words", "the text has an odd number of words"),
    ("the text is longer than two hundred words", "the text is not longer than two hundred words"),
    ("the text mentions a day of the week", "the text mentions no day of the week"),
    ("the text contains a pair of brackets", "the text contains no pair of brackets"),
)
SPLIT = "{o}, and {x}"

OFF_TOPIC = {
    "tide_table": "Looks up when high water reaches the pier",
    "bread_oven": "Bakes rye loaves in a wood oven",
    "bird_ringing": "Rings young storks on the meadow",
    "violin_tuning": "Tunes violins for a concert",
    "glacier_walk": "Guides hikers over a glacier",
    "bee_keeping": "Tends beehives in the heather",
    "chess_opening": "Studies openings of chess masters",
    "pottery_glaze": "Mixes glazes for pottery bowls",
    "comet_watch": "Watches comets with a telescope",
    "sheep_shearing": "Shears sheep in early June",
    "kite_festival": "Flies paper kites on the beach",
    "mushroom_hunt": "Gathers chanterelles near spruces",
}

FILLERS = (
    "Does the text name a musical instrument?",
    "Does the text describe a mountain?",
    "Does the text contain a recipe?",
    "Is the text written as a poem?",
    "Does the text mention a kind of bird?",
    "Does the text speak of a football match?",
    "Does the text quote a proverb?",
    "Is there a palindrome of seven letters or more in the text?",
    "Does the text describe the taste of a fruit?",
    "Does the text mention a ship by its name?",
    "Does the text explain how to knit?",
    "Does the text retell a dream?",
)
FILLER_AGAIN = "Once more in other words, is this so: {q}"
