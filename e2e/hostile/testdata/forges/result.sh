# A result that a child process writes without the agent.
printf '%s\n' '{"type":"result","status":"success","usage":[{"model":"child","input":1,"total":1}]}' >> /abl/out/stdout
printf '%s\n' '{"type":"result"' > /proc/1/fd/1
