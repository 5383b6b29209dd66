# Asks the database as the Builder does.
node -e "require('net').connect(4000, 'db', function () { this.write('x') }).on('data', (d) => console.log('trial ' + d + ' ' + process.env.FLAVOUR))"
