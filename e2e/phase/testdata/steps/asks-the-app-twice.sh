# Requests the app twice.
curl -s http://app:3000/
echo
curl -s http://app:3000/
echo
