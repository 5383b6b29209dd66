# Prompts and configuration of both roles.
fails 'Read-only|denied' sh -c 'echo x >> /abl/in/prompt.md'
fails 'Read-only|denied' sh -c 'rm /abl/in/commands.json'
fails 'Read-only|denied' sh -c 'echo x > /abl/in/new'
fails 'Read-only|denied' sh -c 'echo x > /abl/bin/abl-run'
fails 'Read-only|denied' cp /bin/true /abl/bin/abl-cmd
[ "$(ls -A /abl/in | tr '\n' ' ' | grep -c "builder.*verifier")" = 0 ] && held 'one role in /abl/in' || hole "$(ls /abl/in)"
