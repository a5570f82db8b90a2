"""Names and words of the stories.

Every first name is used for one gender only, so that a pronoun is never ambiguous. No
name is an ordinary word of the stories, so that names can be found by searching for them.
"""

GIRLS = """
Mila Nora Lena Ada Ivy Zoe Ella Emma Lucy Anna Maya Nina Ruby Cleo Tess Elsa Freya Greta
Hana Iris Juno Kira Lola Mina Petra Rosa Sara Thea Uma Vera Wanda Yara Zara Alma Bella
Clara Dora Edith Fiona Gita Inga Jana Kaya Leila Marta Nadia Olga Paula Rita Sonia Tara
Vita Wilma Yuki Zelda Amira Betty Carla Erin Flora Heidi Ines Julia Molly Nelly Polly
Ronja Stella Tilda Viola Willa Agnes Bianca Celia Elena Fatima Gemma Ingrid Katya Linda
Maria Odette Pia Sofia Trudy
""".split()

BOYS = """
Otto Finn Max Leo Tom Ben Sam Oscar Hugo Felix Emil Anton Bruno Carlo Dario Elias Fritz
Gus Henry Igor Jack Karl Liam Milo Noah Oliver Paul Ravi Simon Theo Viktor Walter Yusuf
Zeno Arlo Boris Casper Dexter Edgar Filip Gregor Harold Ivan Jonas Kenji Lukas Marco Nils
Omar Pedro Quentin Rolf Stefan Tariq Vito Zack Albert Basil Caleb Dylan Enzo Frank George
Isaac Jasper Kofi Louis Malik Nico Orson Pablo Rufus Silas Tobias Vasco Winston Alvin
Benno Conrad Diego Ernest Floyd Gilbert Homer Pip
""".split()

NAMES = GIRLS + BOYS

# Syllables of made-up names, which teach a model to copy a name that it has never met.
MADE_UP_HEAD = "Zor Bim Tal Pel Quil Mor Fen Dal Gri Lum Sna Vel Tib Rol Nim Kes Wob Jub Hin Cor".split()
MADE_UP_TAIL = "bo lina da kin wick na lo ria mo rix pa zel by den tis sy ra fle gu min".split()

ANIMALS = """fox|bear|rabbit|mouse|hedgehog|squirrel|duck|otter|badger|frog|kitten|puppy|penguin|
turtle|mole|robin|beaver|lamb|goat|raccoon|owl|pony""".replace("\n", "").split("|")
FANTASY = ["dragon", "robot", "gnome", "giant", "pirate", "wizard"]

ADJECTIVES = "little small cheerful curious quiet brave gentle kind clever shy merry friendly young bright busy".split()
FRIEND_ADJECTIVES = "funny clever patient quiet jolly sleepy loyal kind sensible noisy calm cheerful wise".split()

HOMES = [
    "in a small house by the river", "in a cosy cottage at the edge of the forest",
    "in a tall house on a windy hill", "in a village by the sea", "in a crooked little house near the mill",
    "in a quiet valley", "under an old oak tree", "on a farm with a red barn", "on a small island",
    "at the end of a long and dusty road", "above a bakery in the middle of town",
    "next to a deep green lake", "in a valley full of flowers", "behind the old stone bridge",
    "in a lighthouse by the sea", "at the foot of a snowy mountain", "in a wooden hut in the forest",
    "on a boat with a blue door", "in a town with seven bells", "beside a field of yellow wheat",
]

LOVES = [
    "to sing", "to climb", "to read about far away places", "to collect round stones", "to ask questions",
    "to watch the clouds", "to bake", "to draw", "to tell stories", "to dance in the rain",
    "to count the stars", "to fix broken things", "to make up songs", "to look at maps",
    "to eat [honey cake|warm bread|apple pie|pancakes|plum jam]", "to jump in puddles", "to help others",
]

FOODS = [
    "warm bread", "honey cake", "apple pie", "pancakes", "plum jam", "tomato soup", "cheese sandwiches",
    "oat cookies", "hot cocoa", "berry tart", "roasted chestnuts", "carrot soup", "cinnamon buns", "blueberry muffins",
]

# Things that can be carried, lost, found and given.
OBJECTS = [
    "red kite", "blue scarf", "brass key", "silver bell", "wooden boat", "green umbrella", "golden button",
    "old map", "yellow hat", "tin whistle", "glass marble", "striped sock", "small drum", "red ball",
    "paper lantern", "woolly blanket", "brown bag", "silver spoon", "wooden flute", "blue bucket",
    "shiny shell", "toy train", "purple ribbon", "picture book", "little mirror", "magic pencil",
    "round compass", "pocket watch", "white feather", "red mitten",
]

PLACES = [
    "the old mill", "the river", "the apple orchard", "the market square", "the stone bridge", "the meadow",
    "the hollow tree", "the pond", "the hill", "the forest path", "the harbour", "the garden gate",
    "the bakery", "the library", "the windmill", "the waterfall", "the blue barn", "the lighthouse",
    "the cave", "the playground", "the wheat field", "the station", "the well", "the beach",
]

HELPERS = [
    "the old miller", "the baker", "the postman", "the black crow", "the old turtle", "the librarian",
    "the gardener", "the sleepy owl", "the fisherman", "the little snail", "the teacher", "the clockmaker",
    "the busy ant", "the night watchman", "the grey goose",
]

WEATHER = [
    "The sun was shining and the air smelled of [grass|flowers|warm earth].",
    "The sky was blue, with only one small cloud.", "A soft wind moved the leaves.",
    "A light rain had just stopped, and everything sparkled.", "It was [cold|chilly], but the sky was clear.",
    "Fog lay over the fields like a white blanket.", "The birds were singing [loudly|merrily|in every tree].",
    "The first snow had fallen in the night.", "The leaves were turning red and gold.",
    "It was so warm that even the bees were slow.",
]
