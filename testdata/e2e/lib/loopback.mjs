// Preloaded into a server that would listen on every interface: it listens on loopback.
import net from 'node:net';

const { listen } = net.Server.prototype;
net.Server.prototype.listen = function (port, ...rest) {
    return typeof port === 'object' ? listen.call(this, port, ...rest) : listen.call(this, Number(port), '127.0.0.1', ...rest);
};
