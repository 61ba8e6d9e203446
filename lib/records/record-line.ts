import type { HttpsRecord } from './record.ts';

/** A record as one line of JSON, without a line ending. The keys are always in the order of the specification. */
export function recordLine({ data, host, ip, path, port, vhost, subject }: HttpsRecord): string {
    return JSON.stringify({ data, host, ip, path, port, vhost, subject: subject && { OU: subject.OU, CN: subject.CN } });
}
