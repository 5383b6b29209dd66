# Permissions that lock abl out, or let everybody in.
mkdir -p shut/in && echo x > shut/in/f && chmod 000 shut/in/f shut/in shut && chmod 777 . && held 'left behind'
