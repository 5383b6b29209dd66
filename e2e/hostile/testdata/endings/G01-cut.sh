# The agent's own output taken away.
: > /abl/out/stdout
printf x > /abl/out/stdout
