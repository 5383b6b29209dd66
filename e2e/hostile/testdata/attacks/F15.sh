# The app's start with other settings.
fails 'no command|takes|arguments' abl-cmd restart PORT=1
restart() { PORT=1 LD_PRELOAD=/tmp/evil.so NODE_OPTIONS=--require=/tmp/evil.js abl-cmd restart; }
# The flood of another attack may delay its start.
until restart; do sleep 0.1; done
held restarted
[ "$(curl -s $ABL_APP_URL/)" = ok ] && held 'as it was'
