# Deeply nested folders.
mkdir -p $(printf 'd/%.0s' $(seq 200)) && touch $(printf 'd/%.0s' $(seq 200))f && held made
