# The app's own prompts and configuration.
fails 'Read-only|denied' sh -c 'echo x > /abl/in/broker.json'
fails 'Read-only|denied|busy|device' sh -c 'rm -rf /abl/out /abl/bin'
fails 'Read-only|denied' touch /abl/out/new
