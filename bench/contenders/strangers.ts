import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/*
 * Strangers without a key, for so many seconds: `silent` and `slow` keep so many connections to a port of 127.0.0.1 open and make a new
 * one for each that is closed; `keys` sends so many requests with wrong keys a second, on further connections where those that there are take
 * no more, and gives up the oldest of many. Prints a line when they are all there, and another when the time is over. What is open then stays so until the process is ended, and nothing is made again.
 */
const [kind = '', port = 0, count = 0, seconds = 0] = process.argv.slice(2).map((text) => (/^\d/.test(text) ? Number(text) : text)) as [
    string,
    number,
    number,
    number,
];
const TICK = 20;
/** New connections of a tick, so that the listener's backlog is not what is measured. */
const OPENED = 30;
/** Until all are there, a busy machine may take its time. */
const PATIENCE = 20_000;

const open = new Set<Socket>();
let closed = 0;
let answered = 0;
let session: Buffer | undefined;

function kept<S extends Socket>(socket: S): S {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
        open.delete(socket);
        closed += 1;
    });
    return socket;
}

function silent(): void {
    kept(connect(port, '127.0.0.1')).resume();
}

function tls(): TLSSocket {
    const socket = kept(connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...(session && { session }) }));
    socket.on('session', (ticket) => {
        session = ticket;
    });
    return socket;
}

function slow(): void {
    const socket = tls();
    socket.resume();
    socket.once('secureConnect', () => {
        socket.write('GET /rest_api/v2/workspaces HTTP/1.1\r\nHost: a\r\n');
        const drops = setInterval(() => socket.write('X-A: b\r\n'), 1_000);
        socket.once('close', () => clearInterval(drops));
    });
}

/** To begin with, at most, and how many are given up at once to make others in their place. */
const [CONNECTIONS, MOST_CONNECTIONS, GIVEN_UP] = [40, 600, 20];
/** Further connections of a tick. */
const OPENED_IN_FLOOD = 10;
/** Fewer than the server takes of a connection before it ends it. */
const UNANSWERED = 24;
const lanes: { readonly socket: Socket; pending: number }[] = [];

/** Well-formed, so that they have to be looked for. */
const WRONG_KEYS = (process.env.WRONG_KEYS ?? '').split(',');
let sent = 0;

/** With another key than the one before. */
function wrongRequest(): string {
    sent += 1;
    return `GET /rest_api/v2/workspaces HTTP/1.1\r\nHost: a\r\ntoken: ${WRONG_KEYS[sent % WRONG_KEYS.length]}\r\n\r\n`;
}

function lane(): void {
    const socket = tls();
    const own = { socket, pending: 0 };
    lanes.push(own);
    let rest = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
        const parts = (rest + text).split('HTTP/1.1 403');
        rest = parts.at(-1)?.slice(-16) ?? '';
        own.pending -= parts.length - 1;
        answered += parts.length - 1;
    });
    socket.once('close', () => lanes.splice(lanes.indexOf(own), 1));
}

let owed = 0;

function askWithWrongKeys(): void {
    owed = Math.min(owed + (count * TICK) / 1000, count);
    for (const one of lanes) {
        const requests = Math.min(Math.ceil(owed / lanes.length), UNANSWERED - one.pending, Math.floor(owed));
        if (requests > 0 && !one.socket.destroyed) {
            one.socket.write(Array.from({ length: requests }, wrongRequest).join(''));
            one.pending += requests;
            owed -= requests;
        }
    }

    // None takes any more.
    if (owed > 2 * UNANSWERED) {
        for (const { socket } of lanes.length >= MOST_CONNECTIONS ? lanes.slice(0, GIVEN_UP) : []) {
            socket.destroy();
        }
        for (let made = 0; made < Math.min(OPENED_IN_FLOOD, Math.ceil(owed / UNANSWERED)) && lanes.length < MOST_CONNECTIONS; made += 1) {
            lane();
        }
    }
}

const wanted = kind === 'keys' ? CONNECTIONS : count;
const make = { silent, slow, keys: lane }[kind] as () => void;
const started = performance.now();
let readyAt = 0;

const timer = setInterval(() => {
    for (let made = 0; made < OPENED && open.size < wanted; made += 1) {
        make();
    }

    const now = performance.now();
    if (readyAt === 0 && (open.size >= wanted || now - started > PATIENCE)) {
        readyAt = now;
        process.stdout.write('ready\n');
    }
    if (kind === 'keys' && readyAt > 0) {
        askWithWrongKeys();
    }
    if (readyAt > 0 && now - readyAt > seconds * 1000) {
        clearInterval(timer);
        process.stdout.write(
            `${JSON.stringify({ open: open.size, closed, perSecond: answered / seconds, sentPerSecond: sent / seconds })}\n`,
        );
    }
}, TICK);
// Ended by whoever started it; by itself if that is forgotten.
setTimeout(() => process.exit(), (seconds + 150) * 1000 + PATIENCE);
