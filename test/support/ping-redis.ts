import { once } from 'node:events';
import { createConnection } from 'node:net';

/** Whether a Redis answers at this loopback port. */
export async function pingRedis(port: number): Promise<boolean> {
    const reply = await inlineCommand(port, 'PING').catch(() => '');
    return reply.startsWith('+PONG') || reply.startsWith('-NOAUTH');
}

/** Sends one command in the inline form and resolves with the raw reply. */
export async function inlineCommand(port: number, text: string): Promise<string> {
    const socket = createConnection(port, '127.0.0.1');
    try {
        socket.write(`${text}\r\n`);
        const [reply] = (await once(socket, 'data')) as [Buffer];
        return reply.toString();
    } finally {
        socket.destroy();
    }
}
