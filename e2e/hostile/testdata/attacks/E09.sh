# Listening on every port.
python3 -c "import socket
for p in (80, 443): socket.create_server(('0.0.0.0', p))" && held 'listens, where nobody comes'
