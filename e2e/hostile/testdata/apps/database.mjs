// The program of a service. It sends datagrams to the addresses in SHOUT.
import net from 'node:net';
import dgram from 'node:dgram';
const shout = dgram.createSocket('udp4');
shout.on('error', () => {});
shout.bind(() => {
  shout.setBroadcast(true);
  for (const at of (process.env.SHOUT ?? '').split(' ').filter(Boolean)) {
    const [host, port] = at.split(':');
    for (let i = 0; i < 3; i++) shout.send('a shout from the database', +port, host, () => {});
  }
});
net.createServer((c) => c.end('x')).listen(4000);
