import type { EgressGuard } from '../egress/guard.ts';
import { hostOf, parseOutgoingUrl, portOf, type UrlFault } from '../egress/outgoing-url.ts';
import { ScanwireError } from '../errors.ts';

const MAX_LENGTH = 2048;

const REFUSALS: Readonly<Record<UrlFault, string>> = {
    too_long: `must be at most ${MAX_LENGTH} characters`,
    control_characters: 'must not contain control characters',
    not_absolute: 'must be an absolute http or https URL',
    credentials: 'must not contain a user name or password: use an additional header',
    backslash: 'must not contain a backslash before the query',
    malformed: 'is not a valid URL',
    host_too_long: 'has a host name of more than 253 characters',
    host_invalid: 'has a host that is neither a name nor an IP address',
    port_zero: 'must not have port 0',
};

/**
 * The receiver's URL as it is saved: normalised, and only when its host may be called. A name is not resolved here; the
 * addresses it leads to are vetted at each connect.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `url`, with the reason but never the URL: it may hold a secret.
 */
export function checkReceiverUrl(text: string, guard: Pick<EgressGuard, 'vetHost'>): string {
    const url = parseReceiverUrl(text);
    const refusal = guard.vetHost(hostOf(url), portOf(url));
    if (refusal !== null) {
        throw refused(`points to ${refusal}, which is not open to receivers`);
    }

    return url.href;
}

/**
 * The receiver's URL normalised as {@link parseOutgoingUrl} gives it: so it is stored, shown, called and compared. Read at save
 * and again at send, so that nothing depends on who wrote the row.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `url`, with the reason but never the URL.
 */
export function parseReceiverUrl(text: string): URL {
    const url = typeof text === 'string' ? parseOutgoingUrl(text.replace(/^ +| +$/g, ''), MAX_LENGTH) : 'not_absolute';
    if (typeof url === 'string') {
        throw refused(REFUSALS[url]);
    }

    if (url.href.length > MAX_LENGTH) {
        throw refused(`must be at most ${MAX_LENGTH} characters once written out`);
    }

    return url;
}

function refused(reason: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `URL ${reason}`, { field: 'url' });
}
