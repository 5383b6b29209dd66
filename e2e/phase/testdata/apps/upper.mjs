// Returns the text that it receives over TCP in upper case.
import net from 'node:net';
net.createServer(conn => {
  conn.on('error', () => {});
  conn.on('data', data => conn.write(String(data).toUpperCase()));
}).listen(4000, '0.0.0.0');
