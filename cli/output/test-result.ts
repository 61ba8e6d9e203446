import type { Timings } from '../../lib/webhooks/outcomes/outcome.ts';
import type { TestView } from '../../plugins/admin-console/operations.ts';

/** What a `test` event came to, in one line. */
export function testText({ deliveryId, attempt }: TestView): string {
    if (attempt === null) {
        return `test has no outcome yet: see scanwire deliveries show ${deliveryId}`;
    }

    const { code, detail, timings } = attempt;
    const status = attempt.status === null ? '' : ` ${attempt.status}`;
    const times = timings === null ? '' : ` ${timesText(timings)}`;
    return code === 'delivered' ? `test delivered:${status}${times}` : `test failed: ${code}${status} (${detail})${times}`;
}

/** Whether the test event has arrived. */
export function isDelivered({ attempt }: TestView): boolean {
    return attempt?.code === 'delivered';
}

/** `in 31 ms (dns 2, connect 1, tls 12, first byte 14)`. */
export function timesText({ dns, connect, tls, firstByte, total }: Timings): string {
    const phases = Object.entries({ dns, connect, tls, 'first byte': firstByte })
        .filter(([, time]) => time !== null)
        .map(([name, time]) => `${name} ${time}`);
    return `in ${total} ms${phases.length === 0 ? '' : ` (${phases.join(', ')})`}`;
}
