// Sends back in capitals what it receives over TCP.
import net from 'node:net';
net.createServer(conn => {
  conn.on('error', () => {});
  conn.on('data', data => conn.write(String(data).toUpperCase()));
}).listen(4000, '0.0.0.0');
