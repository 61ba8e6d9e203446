import { createServer, connect as open, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A server of this machine as if it were so many milliseconds away: what goes either way arrives so much later, in its order. */
const [port = '', away = ''] = process.argv.slice(2);
const milliseconds = Number(away);

function carry(from: Socket, to: Socket): void {
    from.setNoDelay();
    from.on('data', (bytes: Buffer) => void sleep(milliseconds).then(() => to.write(bytes)));
    from.on('error', () => undefined);
    from.on('close', () => void sleep(milliseconds).then(() => to.destroy()));
}

const server = createServer((near) => {
    const far = open(Number(port), '127.0.0.1');
    carry(near, far);
    carry(far, near);
});
server.listen(0, '127.0.0.1', () => {
    const { port: own } = server.address() as { port: number };
    process.stdout.write(`${own}\n`);
});
process.once('SIGTERM', () => process.exit());
