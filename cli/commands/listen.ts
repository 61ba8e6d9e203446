import type { Command } from 'commander';
import { jsonText, printable, printableLines } from '../../lib/printable.ts';
import { checkSecret } from '../../lib/webhooks/messages/signing-secret.ts';
import { type Call, performing } from '../command.ts';
import { wholeNumber } from '../option-values.ts';
import { addSecret, secretOf } from '../secret-input.ts';
import { stopSignal } from '../stop-signal.ts';
import { type Received, startReceiver } from '../verifying-receiver.ts';

export function define(self: Command): void {
    performing(self, listen);
    self.requiredOption('--port <port>', 'port to listen on, 0 for a free one', wholeNumber(0, 65535))
        .option('--host <host>', 'address to listen on', '127.0.0.1')
        .hook('preAction', assertSecret);
    addSecret(self, "the exporter's signing secret");
}

function assertSecret(self: Command): void {
    const { secret, secretFile, secretEnv } = self.opts();
    if ((secret ?? secretFile ?? secretEnv) === undefined) {
        self.error("error: required option '--secret-file <file>' or '--secret-env <variable>' not specified");
    }
}

/** Runs the receiver until it is told to stop. With `--json` it prints a line when it listens, then one for each message. */
async function listen({ options, json }: Call): Promise<undefined> {
    const { host, port } = options as { host: string; port: number };
    const secret = checkSecret((await secretOf(options)) ?? '');
    const print = json ? printJson : printText;
    // Who reads that it listens may stop it at once.
    const stopped = stopSignal();
    const receiver = await startReceiver({ host, port, secret: () => secret, onMessage: print });
    process.stdout.write(json ? `${jsonText({ listening: receiver.url })}\n` : `Listening on ${receiver.url}\n`);
    await stopped;
    await receiver.close();
}

function printJson({ receivedAt, event, verification, body }: Received): void {
    const { ok, forms, reason } = verification;
    process.stdout.write(`${jsonText({ receivedAt, event, verified: ok, forms, reason, body })}\n`);
}

function printText({ receivedAt, event, verification, body }: Received): void {
    const verdict = verification.ok ? `verified (${verification.forms.join(', ')})` : `NOT verified: ${verification.reason}`;
    process.stdout.write(
        `\n${receivedAt.toISOString()}  ${printable(event ?? 'no event kind')}  ${printable(verdict)}\n${body === null ? '' : `${pretty(body)}\n`}`,
    );
}

const INDENT = 4;
/** How many times as long as its body a message may be printed. */
const MOST = 10;

function pretty(body: string): string {
    try {
        const document: unknown = JSON.parse(body);
        const most = MOST * body.length;
        const isShort = indentedLength(JSON.stringify(document), most) <= most;
        return isShort ? printableLines(JSON.stringify(document, null, INDENT)) : printable(body);
    } catch {
        return printable(body);
    }
}

/** How long JSON is at most when it is indented, or something above `most`: strangers may nest a short body so that it becomes thousands of times as long. */
function indentedLength(json: string, most: number): number {
    let [length, depth, isText] = [json.length, 0, false];
    for (let at = 0; at < json.length && length <= most; at += 1) {
        const sign = json.charAt(at);
        if (isText) {
            at += sign === '\\' ? 1 : 0;
            isText = sign !== '"';
        } else if (sign === '"') {
            isText = true;
        } else if ('[]{},:'.includes(sign)) {
            depth += '[{'.includes(sign) ? 1 : ']}'.includes(sign) ? -1 : 0;
            // A new line, or the blank behind a name.
            length += sign === ':' ? 1 : 1 + INDENT * depth;
        }
    }

    return length;
}
