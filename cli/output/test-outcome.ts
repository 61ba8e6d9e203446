import type { TestOutcome } from '../../lib/webhooks/exporters.ts';
import type { Timings } from '../../lib/webhooks/outcome.ts';

/** What a `test` event came to, in one line. */
export function testText({ attempt }: TestOutcome): string {
    const outcome = attempt?.outcome;
    if (outcome == null) {
        return 'test not sent: no worker of its collector took it in time';
    }

    const status = outcome.status === null ? '' : ` ${outcome.status}`;
    return outcome.code === 'delivered'
        ? `test delivered:${status} ${timesText(outcome.timings)}`
        : `test failed: ${outcome.code}${status}, ${outcome.detail}`;
}

export function isDelivered({ attempt }: TestOutcome): boolean {
    return attempt?.outcome?.code === 'delivered';
}

/** `in 31 ms (dns 2, connect 1, tls 12, first byte 14)`. */
export function timesText({ dns, connect, tls, firstByte, total }: Timings): string {
    const phases = Object.entries({ dns, connect, tls, 'first byte': firstByte })
        .filter(([, time]) => time !== null)
        .map(([name, time]) => `${name} ${time}`);
    return `in ${total} ms${phases.length === 0 ? '' : ` (${phases.join(', ')})`}`;
}
