import { parseProxyUrl } from '../../egress/proxy.ts';
import { ScanwireError } from '../../errors.ts';
import { ifOpens, type KeyRing } from '../../keys/key-ring.ts';
import { subjectOf } from '../../schema-validation.ts';
import { keepsHeaders } from '../messages/message-headers.ts';
import { unsealAuthentication, unsettledCredential } from './authentication.ts';
import type { StoredExporter } from './exporter.ts';
import type { ExporterChanges, ExporterPatch } from './exporter-patch.ts';
import { knownUrl, unsealUrl } from './sealed-url.ts';

/**
 * Refuses changes that take along unasked what is sealed of an exporter. Headers, credentials and the secret of a format were given for one
 * receiver, and whoever may change an exporter could never read them. So neither a URL of another origin may get them, nor a proxy that could not
 * read them before.
 *
 * Only the operator may keep them all the same (`keepHeaders`): it is not kept who gave them, and an owner who did can give them again.
 *
 * @param after The exporter as the changes make it.
 * @param asOwner Whether its owner asks for the changes.
 * @returns What must not change meanwhile.
 * @throws ScanwireError `INVALID_INPUT`, with the first setting that is not given again; `UNSEALABLE`.
 */
export function carriedPatch(
    before: StoredExporter,
    after: StoredExporter,
    changes: ExporterChanges,
    { keyRing, asOwner }: { readonly keyRing: KeyRing; readonly asOwner: boolean },
): ExporterPatch {
    const { url, headers, proxy, ca, trust = before.trust, keepHeaders = false } = changes;
    const isElsewhere = url !== undefined || (proxy ?? ca ?? null) !== null || trust !== before.trust;
    if ((keepHeaders && !asOwner) || !isElsewhere) {
        return {};
    }

    const left = unsettled(before, changes);
    const why = left === undefined ? null : newReader(before, after, keyRing);
    if (left !== undefined && why !== null) {
        const unless = asOwner ? 'for only the operator may keep it' : 'or keepHeaders be true';
        throw new ScanwireError('INVALID_INPUT', `${subjectOf(left)} must be given again, ${unless}: ${why}`, { field: left });
    }

    return {
        expectedAuthentication: before.sealedAuthentication,
        expectedFormatSecret: before.sealedFormatSecret,
        ...(headers === undefined && { expectedHeaders: before.sealedHeaders }),
        ...(url === undefined && { expectedUrl: before.url }),
    };
}

/** The name of the first setting whose sealed value would go along although the changes do not give it again; undefined for none. */
function unsettled(before: StoredExporter, changes: ExporterChanges): keyof ExporterChanges | undefined {
    const { headers } = changes;
    if ((headers === undefined || keepsHeaders(headers)) && before.sealedHeaders !== null) {
        return 'headers';
    }

    const isKept = changes.formatSecret === undefined && (changes.format ?? before.format) === before.format;
    return isKept && before.sealedFormatSecret !== null ? 'formatSecret' : unsettledCredential(before, changes);
}

/** Who could read what is sent that could not before, as the end of a sentence; null for nobody. */
function newReader(before: StoredExporter, after: StoredExporter, keyRing: KeyRing): string | null {
    const [former, url] = [knownUrl(before, keyRing), unsealUrl(after, keyRing)];
    if (former === null || !URL.canParse(former) || new URL(url).origin !== new URL(former).origin) {
        return 'the URL leads to another scheme, host or port, and would take what was given for the former one there';
    }

    const [reader, known] = [readingProxy(after, url, keyRing), readingProxy(before, former, keyRing)];
    const isKnown = reader === null || (reader.origin === known?.origin && (known.ca === null || known.ca === reader.ca));
    return isKnown ? null : 'the proxy could read what it could not read until now';
}

/** A proxy that can read what is sent through it. */
interface ReadingProxy {
    readonly origin: string;
    /** The authorities without whose key it cannot; null where it needs none. */
    readonly ca: string | null;
}

/**
 * The proxy of an exporter that reads plain http, or may stand in for an https receiver: what `trust` takes it can make for itself, and whoever
 * has given authorities may have their key. Null where there is none.
 */
function readingProxy({ trust, ...exporter }: StoredExporter, url: string, keyRing: KeyRing): ReadingProxy | null {
    // Whether all is there that is said to be is judged with the change, where it may be given again.
    const { proxy, ca } = ifOpens(() => unsealAuthentication({ ...exporter, trust, authentication: [] }, keyRing)) ?? {};
    const needsNone = url.startsWith('http:') || trust !== 'strict';
    if (proxy === undefined || (!needsNone && ca === undefined)) {
        return null;
    }

    const address = parseProxyUrl(proxy.url);
    return { origin: typeof address === 'string' ? proxy.url : address.url.origin, ca: needsNone || ca === undefined ? null : ca };
}
