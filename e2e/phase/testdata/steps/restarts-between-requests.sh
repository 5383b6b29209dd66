# Requests the app twice before and once after a restart.
curl -s http://app:3000/
curl -s http://app:3000/
abl-cmd restart
curl -s http://app:3000/
echo
