import { ScanwireError } from '../../errors.ts';
import { ifOpens, isSealedByFormerKey, type KeyRing, type SealedText } from '../../keys/key-ring.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { StoredExporter } from './exporter.ts';

type SealingParts = Pick<WebhooksContext, 'exporters' | 'deliveries' | 'keyRing' | 'onError'>;

/** The receiver's URL as it is stored for an exporter: path and query may hold a token. */
function sealUrl(keyRing: KeyRing, exporterId: string, url: string): string {
    return keyRing.seal(url, sealingContext(exporterId));
}

/** How a URL begins, and no sealed text does. */
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** The sealed URL of an exporter: one text, or none where an earlier release has stored it unsealed. */
export function sealedUrl({ id, url }: Pick<StoredExporter, 'id' | 'url'>): readonly SealedText[] {
    return SCHEME.test(url) ? [] : [{ sealed: url, context: sealingContext(id) }];
}

/** The whole URL of an exporter's receiver. @throws ScanwireError `UNSEALABLE`: this key ring cannot unseal it. */
export function unsealUrl(exporter: Pick<StoredExporter, 'id' | 'url'>, keyRing: KeyRing): string {
    const [text] = sealedUrl(exporter);
    return text === undefined ? exporter.url : keyRing.open(text.sealed, text.context);
}

/** The same, but null where this key ring cannot unseal it. */
export function knownUrl(exporter: Pick<StoredExporter, 'id' | 'url'>, keyRing: KeyRing): string | null {
    return ifOpens(() => unsealUrl(exporter, keyRing));
}

const UNREADABLE = 'unreadable URL';

/** A URL for people: what comes after its host may hold a token, and is shown as `…`. */
export function shownUrl(url: string | null): string {
    if (url === null || !URL.canParse(url)) {
        return UNREADABLE;
    }

    const { origin, pathname, search } = new URL(url);
    return `${origin}${pathname === '/' && search === '' ? '/' : '/…'}`;
}

/**
 * The same for lists of exporters that are shown again and again. Each sealed URL is unsealed once and remembered, since that takes longer than
 * the rest of a list.
 */
export function shownUrls(keyRing: KeyRing): (exporters: readonly Pick<StoredExporter, 'id' | 'url'>[]) => readonly string[] {
    let known = new Map<string, string>();
    return (exporters) => {
        const shown = exporters.map((exporter) => {
            const [text] = sealedUrl(exporter);
            const key = text === undefined ? null : `${text.context} ${text.sealed}`;
            const before = key === null ? undefined : known.get(key);
            return [key, before ?? shownUrl(knownUrl(exporter, keyRing))] as const;
        });
        // URLs that are not in the list any more are forgotten.
        known = new Map(shown.flatMap(([key, url]) => (key === null || url === UNREADABLE ? [] : [[key, url] as const])));
        return shown.map(([, url]) => url);
    };
}

/** The sealing context of the URL. The text can be unsealed only with the same context, so that it is of no use in another row. */
function sealingContext(exporterId: string): string {
    return `exporter:${exporterId}:url`;
}

/** Whether every process that sends can unseal a sealed URL. Those of earlier releases would take it for an invalid URL. */
async function canAllUnseal({ deliveries }: SealingParts): Promise<boolean> {
    return (await deliveries.sessions()).every(({ opensUrls }) => opensUrls);
}

/** The URL of an exporter's receiver as it is to be stored now. */
export async function urlToStore(id: string, url: string, parts: SealingParts): Promise<string> {
    return (await canAllUnseal(parts)) ? sealUrl(parts.keyRing, id, url) : url;
}

/** Whether the URL is sealed with the current key. */
function isWellSealed(exporter: StoredExporter, keyRing: KeyRing): boolean {
    const [text] = sealedUrl(exporter);
    return text !== undefined && !isSealedByFormerKey(text.sealed, keyRing);
}

/**
 * Seals the URLs that are stored unsealed, and seals again those that a former key has sealed. A URL is unsealed if an earlier release has stored it,
 * or if it was stored while a process of such a release was sending, which could not unseal it. While such a process sends, nothing is sealed.
 * Exporters are updated one at a time, so that this can be cut off anywhere.
 *
 * @returns Whether all are sealed with the current key, but for those that the ring cannot open, which are reported; if not, it is to be tried again.
 */
async function sealUrls(parts: SealingParts): Promise<boolean> {
    if (!(await canAllUnseal(parts))) {
        return false;
    }

    const { exporters: store, keyRing } = parts;
    // No request waits for this, so that the store may take its time.
    for (const exporter of (await store.list({ patient: true })).filter((one) => !isWellSealed(one, keyRing))) {
        await sealAgain(exporter, parts);
    }
    return true;
}

async function sealAgain(exporter: StoredExporter, { exporters: store, keyRing, onError }: SealingParts): Promise<void> {
    const { id, url: before } = exporter;
    try {
        await store.update(id, { url: sealUrl(keyRing, id, unsealUrl(exporter, keyRing)), expectedUrl: before });
    } catch (error) {
        const code = error instanceof ScanwireError ? error.code : null;
        if (code === 'UNSEALABLE') {
            const reason = (error as ScanwireError).message;
            onError(new ScanwireError('UNSEALABLE', `Cannot seal the URL of exporter ${id}: ${reason}`, { cause: error }));
        } else if (code !== 'CONFLICT' && code !== 'NOT_FOUND') {
            throw error;
        }
        // Else somebody has just changed or removed it.
    }
}

/** Milliseconds between two checks whether processes of the version before still send. */
const SEAL_EVERY = 15_000;

/** Seals the URLs of exporters as soon as all processes that send can unseal them. */
export function urlSealing(parts: SealingParts): { start(): Promise<void>; stop(): Promise<void> } {
    let timer: NodeJS.Timeout | undefined;
    let work: Promise<void> = Promise.resolve();

    async function seal(): Promise<void> {
        if (await sealUrls(parts)) {
            clearInterval(timer);
        }
    }

    function sealOnce(): Promise<void> {
        work = seal().catch(parts.onError);
        return work;
    }

    return {
        async start() {
            clearInterval(timer);
            timer = setInterval(() => void sealOnce(), SEAL_EVERY).unref();
            await sealOnce();
        },

        async stop() {
            clearInterval(timer);
            await work;
        },
    };
}
