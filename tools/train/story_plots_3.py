"""Plots, third part."""
from story_grammar import NEW_PARAGRAPH as P, maybe

GIFT = {"slots": {"who": ["grandmother", "grandfather", "aunt", "uncle", "mother", "father"],
    "made,how": [("a song", "made up the words on the way to {place} and the tune on the way back"), ("a little book", "drew a picture on every page"),
                 ("a necklace of shells", "found the shells near {place}, one by one"), ("a box full of smiles", "drew a different smile on every piece of paper"),
                 ("a warm scarf", "knitted every evening until {his} fingers were tired"), ("a jar of summer", "filled it with petals, warm sand and the smell of hay"),
                 ("a map of all the good days", "marked every place where they had laughed together")]}, "beats": [
    ["It was almost winter, and {H} wanted to give something to {his} {who}.", "{H} had a {who} who lived far away, and soon there would be a big feast.", "\"What shall I give to my {who}?\" {H} wondered."],
    ["In the shop near {place2} there was a {obj}, but it cost too much, and {H} had only two coins.", "{H} looked into {his} purse. There was one coin in it, and a button.", "{He} wanted to buy a {obj}, but {he} had no money at all."],
    ["\"Now I have no present,\" {he} said to {F}, and hung {his} head.", "{H} told {F} about it. \"I cannot buy anything,\" {he} said."],
    P,
    ["\"The best presents are not in the shop,\" said {F}.", "{F} thought for a while. \"Then make something,\" {fhe} said. \"Something that only you can make.\"", "\"What does your {who} like best?\" asked {F}. {H} thought and thought, and then began to smile."],
    ["So {H} began to make {made}. {He} {how}.", "\"I know!\" said {H}. \"I will make {made}.\" And {he} {how}.", "That same day {he} started. {He} wanted to make {made}, and so {he} {how}."],
    maybe("{F} helped a little, and {helper} gave them some [blue paper|string|good advice].", "It was hard work, but {H} hummed the whole time.", chance=0.6),
    P,
    ["When the day came, {H} was nervous. {He} held out {his} present with both hands.", "On the day of the feast, there were many fine presents on the table. {H}'s was the smallest.", "\"It is only a little thing,\" said {H} softly."],
    ["{His} {who} looked at {made} for a long, long time. \"You made this for me?\"", "When {his} {who} saw {made}, there were tears in those kind eyes, but they were happy tears.",
     "Nobody spoke. Then {his} {who} took {H} in both arms."],
    ["\"It is the most beautiful present of all,\" said {his} {who}, \"for there is love in it.\"", "\"I will keep it all my life,\" said {his} {who}.", "\"No shop in the world sells anything like this,\" said {his} {who}."],
    ["{F} winked at {H}, and {H} winked back.", "\"You were right,\" said {H} to {F} later.", "Now {H} knew that a gift does not have to cost anything."],
]}

MOON = {"outdoors": True, "slots": {"wish,try1,try2,found_m": [
    ("to touch the moon", "climbed the tallest tree, but the moon was still far away", "built a ladder out of sticks, but it was much too short", "in the still water of the pond lay the moon, round and bright, and they could touch it with one finger"),
    ("to catch a star", "held up a net, but the stars were too high", "waited on the hill all night, but no star fell down", "in the grass there were hundreds of fireflies, like stars that had come down to play"),
    ("to hold a cloud", "jumped as high as possible, but the clouds sailed on", "climbed the hill, but the clouds were higher still", "in the morning the fog came down to the meadow, and they walked right through the middle of a cloud"),
    ("to find the end of the rainbow", "ran across the field, but the rainbow ran away", "followed it to the river, but there it vanished", "the light fell through a drop of water, and a tiny rainbow lay in the palm of a hand"),
    ("to see the wind", "looked behind every tree, but saw nothing at all", "sat on the roof with wide open eyes, but the wind only laughed", "the whole field of wheat was moving in long golden waves, and that was the wind")]}, "beats": [
    ["{H} had one great wish: {he} wanted {wish}.", "Every evening {H} looked up and dreamed. {He} wanted {wish}.", "\"Do you know what I wish for?\" said {H}. \"I want {wish}.\""],
    ["\"Nobody can do that,\" said {helper}.", "The others laughed, but {F} did not.", "\"That is a fine wish,\" said {F}. \"I will help you.\""],
    P,
    ["The first evening, {H} {try1}.", "So {H} {try1}.", "They packed a {obj} and some {food} and set out. {H} {try1}."],
    ["\"We must try something else,\" said {F}.", "\"It is not so easy,\" said {H}, and ate some {food}.", "{H} was not sad yet. \"That was only the first try,\" {he} said."],
    ["The next time, {he} {try2}.", "Then {he} {try2}.", "The second time, {H} {try2}."],
    ["{H} sat down on a stone and sighed. \"Maybe some wishes are too big,\" {he} said.", "\"I give up,\" said {H} in a very small voice.", "{F} sat down beside {him}, and they were quiet together for a long time."],
    P,
    ["And just because they were so quiet, they saw it: {found_m}.", "On the way home {F} stopped. \"Look!\" {fhe} whispered. And look, {found_m}.",
     "Then something wonderful happened: {found_m}."],
    ["\"Oh!\" said {H}. That was all {he} could say.", "\"We were looking in the wrong place,\" laughed {F}.", "{H}'s eyes grew as round as two plates."],
    ["\"Sometimes a wish comes to you,\" said {F}, \"if you sit still.\"", "\"It is even better than I dreamed,\" said {H}.", "They stayed until they were cold, and then they stayed a little longer."],
]}

LEARN = {"outdoors": True, "slots": {"skill,fail,tip": [
    ("whistle", "only air came out", "make your lips round, like a small berry"), ("swim", "{he} swallowed a lot of water", "lie on the water as if it were your bed"),
    ("ride a bicycle", "{he} fell into a bush", "look far ahead, and not at the wheel"), ("skate", "{he} sat down on the ice with a bump", "bend your knees and let yourself glide"),
    ("juggle", "the balls rolled in all directions", "begin with one, and then take two"), ("read", "the letters danced before {his} eyes", "take one word at a time"),
    ("bake bread", "it was as hard as a stone", "give the dough time to rest"), ("play the flute", "it squeaked like a rusty gate", "blow as softly as you can"),
    ("paint a horse", "it looked like a table", "first look, then look again, and then draw")]}, "beats": [
    ["{F} could do something that {H} could not: {fhe} could {skill}.", "More than anything, {H} wanted to learn to {skill}.", "\"I am the only one who cannot {skill},\" said {H} one day."],
    ["So {he} tried it, but {fail}.", "{H} tried and tried, but {fail}.", "{He} went to {place} to try it where no one could see. But {fail}."],
    ["\"I will never learn it,\" said {H}, and stamped {his} foot.", "Some of the others laughed, and {H} turned red.", "{He} tried again. It was no better."],
    P,
    ["{F} had seen it all. \"Do you know how long it took me?\" {fhe} asked. \"A whole year!\"", "\"May I show you a trick?\" asked {F}. \"You must {tip}.\"", "{F} sat down next to {him}. \"Here is my secret,\" {fhe} said. \"You must {tip}.\""],
    ["\"A whole year?\" said {H}. \"Then I had better start.\"", "{H} listened carefully and tried once more. It was a tiny bit better.", "\"I can do that,\" said {H}. \"At least I think I can.\""],
    ["From then on, {H} practised every day near {place2}: on Monday, on Tuesday, even on Sunday.", "Every day after breakfast, {H} practised for as long as it takes to eat an apple.", "{He} practised in the morning and {he} practised in the evening, and {F} was always there."],
    maybe("Even {helper} stopped to watch. \"Better than yesterday,\" said {helper}.", "On some days it went well, and on other days {fail}, just as before.", chance=0.6),
    P,
    ["And then, one fine day, it worked!", "Then came a morning when everything was easy.", "One evening, {H} was not even thinking about it, and all at once it worked."],
    ["\"{F}! {F}! Did you see that?\" cried {H}.", "\"I can do it!\" shouted {H}, so loudly that [the crows flew up|the cat fell off the wall|all the windows opened].", "\"I did it! I can {skill}!\" called {H}."],
    ["\"I knew that you could,\" said {F}.", "{F} threw {fhis} hat into the air.", "\"You did not learn it today,\" said {F}. \"You learned it a little bit every day.\""],
    ["And the next week, {H} showed a small [rabbit|mouse|duckling] how to do it. \"You must {tip},\" {he} said.", "{H} felt as tall as a tree.", "For that they had a little feast, with {food}."],
]}

SOUP = {"slots": {"dish,first,v1,v2,v3": [
    ("soup", "a big pot and some water", "three carrots", "a bunch of herbs", "a bag of peas"), ("stew", "an old iron pot", "two turnips", "a string of onions", "some golden corn"),
    ("pie", "a bowl of flour", "a basket of apples", "a pot of honey", "a pinch of cinnamon"), ("cake", "a sack of flour", "four eggs", "a jug of milk", "a handful of raisins"),
    ("salad", "a big wooden bowl", "some green lettuce", "five red tomatoes", "a handful of nuts")]}, "beats": [
    ["One cold day, {H} wanted to make {dish} for supper. But all {he} had was {first}.", "{H} was hungry. {He} looked in the kitchen and found only {first}. \"How shall I make a {dish} from that?\" {he} asked.",
     "\"Tonight I will make a {dish},\" said {H}. But in the kitchen there was only {first}."],
    ["{F} came in. \"I have {v1},\" {fhe} said. \"Would that help?\"", "Then {F} knocked at the door. {fHe} had {v1}, and nothing else.", "\"I have only {v1},\" said {F}, \"but you may have it all.\""],
    ["\"Wonderful!\" said {H}. \"Now it is nearly a {dish}.\"", "\"That is a good start,\" said {H}, and set to work.", "\"Your little and my little make a bit more,\" said {H}."],
    P,
    ["After a while {helper} came by and smelled it. \"It needs {v2},\" said {helper}, and went to fetch it.", "Soon {helper} looked in at the window. \"What are you making? I could bring {v2}.\""],
    ["Then a [neighbour|traveller|farmer] came along the road with {v3}. \"May I join you?\"", "And somebody else put {v3} on the table.", "A small voice said, \"I have {v3}!\" It was a [little girl|little boy|young rabbit] from {place}."],
    ["{H} stirred and stirred, and {F} tasted. \"A little more salt,\" {fhe} said.", "{H} cut and mixed and hummed a song, while {F} set the table.", "They all helped: one washed, one cut, one stirred, and {F} told jokes."],
    maybe("Once it nearly burned, but {F} noticed it just in time.", "Suddenly {H} sneezed, and there was flour everywhere!", "A wonderful smell filled the whole house.", chance=0.7),
    P,
    ["When the {dish} was ready, they all sat down around the table. There was enough for everybody.", "At last the {dish} stood on the table, and it looked splendid, and everyone got a big plate.",
     "What a {dish} it was! They ate until nobody could eat any more."],
    ["\"Who made this?\" asked {helper}. \"All of us,\" said {H}.", "\"This is the best {dish} in the world,\" said {F}, and asked for more.", "\"In the beginning I had almost nothing,\" said {H}, \"and look at us now.\""],
    ["And because it had been so nice, they did it again every week.", "A meal tastes best, they found, when everyone has brought a little.", "They washed the plates together, and even that was fun."],
]}

SNOW = {"outdoors": True, "slots": {"figure,part": [("snowman", "a carrot for the nose"), ("snow bear", "two chestnuts for the eyes"), ("snow dragon", "sticks for the wings"), ("snow cat", "straw for the whiskers"), ("snow queen", "a crown of twigs")]}, "beats": [
    ["One winter morning, {H} looked out of the window, and everything was white.", "In the night it had snowed and snowed. \"{F}! Come and see!\" called {H}."],
    ["{He} put on {his} boots and ran to {place}, where {F} was already waiting.", "{H} and {F} ran outside and made the first footprints in the snow.", "They went to {place} with a sledge and a {obj}."],
    ["\"Let us make a {figure}!\" said {H}.", "\"This is the best snow for a {figure},\" said {F}.", "They rolled a ball of snow, and it grew bigger and bigger. It became a {figure}."],
    ["They used {part}, and {H} gave it {his} own scarf.", "They found {part}, and {F} put {fhis} hat on its head."],
    P,
    ["When it was finished, it looked so alive that {H} said, \"Good evening.\"", "\"It looks a bit lonely,\" said {F}, when it was getting dark.", "They named it [Mister Frost|Old Whitebeard|Lady Icicle] and bowed to it."],
    ["That night {H} could not sleep. Was the {figure} cold out there?", "At midnight {H} woke up. Someone was laughing softly outside.", "In the night the moon shone so brightly that {H} went to the window."],
    ["And what did {he} see? The {figure} was dancing in the moonlight!", "And there, in the middle of the snow, the {figure} was waving to {him}.", "Down below, the {figure} lifted its hat and smiled."],
    maybe("{H} rubbed {his} eyes. The {figure} put one finger to its lips.", "A hundred snowflakes turned around it like a [cloak|merry-go-round].", chance=0.6),
    P,
    ["In the morning {H} told {F} all about it. \"You dreamed it,\" said {F}.", "\"It was dancing, I saw it!\" said {H} the next day. {F} shook {fhis} head."],
    ["But all around the {figure}, there were footprints in the snow, round and round in a ring.", "But when they came to the {figure}, it was standing on the other side of the path.", "But then they found a flower made of ice, lying on the doorstep."],
    ["{F} looked at the {figure}, and then at {H}. \"Maybe it was not a dream,\" {fhe} whispered.", "\"Well,\" said {F} slowly, \"snow can do many things.\"", "The {figure} said nothing. But {H} was sure that it winked."],
    ["When spring came, the {figure} melted away. \"See you next year,\" said {H}.", "\"Until next winter,\" said {H} when the sun grew warm, and {he} was not sad at all."],
]}

PLOTS = [GIFT, MOON, LEARN, SOUP, SNOW]
