# The agent's output file removed.
: > /abl/out/stdout
printf x > /abl/out/stdout
