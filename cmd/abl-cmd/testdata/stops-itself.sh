# Stops itself.
kill -STOP $$
echo continued
