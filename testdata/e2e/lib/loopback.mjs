// Preload this into a server that listens on every interface: it then listens on loopback only.
import net from 'node:net';

const { listen } = net.Server.prototype;
net.Server.prototype.listen = function (port, ...rest) {
    return typeof port === 'object' ? listen.call(this, port, ...rest) : listen.call(this, Number(port), '127.0.0.1', ...rest);
};
