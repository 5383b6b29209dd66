# An app that prints a word and ends.
echo up
