import { ScanwireError } from '../../errors.ts';
import { isOutdated, type KeyRing, type SealedText } from '../../keys/key-ring.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { StoredExporter } from './exporter.ts';

type SealingParts = Pick<WebhooksContext, 'exporters' | 'deliveries' | 'keyRing' | 'onError'>;

/** The receiver's URL as it is stored for an exporter: path and query may hold a token. */
function sealUrl(keyRing: KeyRing, exporterId: string, url: string): string {
    return keyRing.seal(url, urlContext(exporterId));
}

/** How a URL begins, and no sealed text does. */
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** The sealed URL of an exporter: one text, or none where an earlier release has stored it unsealed. */
export function sealedUrl({ id, url }: Pick<StoredExporter, 'id' | 'url'>): readonly SealedText[] {
    return SCHEME.test(url) ? [] : [{ sealed: url, context: urlContext(id) }];
}

/** The whole URL of an exporter's receiver. @throws ScanwireError `UNSEALABLE`: this key ring cannot unseal it. */
export function unsealUrl(exporter: Pick<StoredExporter, 'id' | 'url'>, keyRing: KeyRing): string {
    const [text] = sealedUrl(exporter);
    return text === undefined ? exporter.url : keyRing.open(text.sealed, text.context);
}

/** The same, but null where this key ring cannot unseal it. */
export function knownUrl(exporter: Pick<StoredExporter, 'id' | 'url'>, keyRing: KeyRing): string | null {
    try {
        return unsealUrl(exporter, keyRing);
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'UNSEALABLE') {
            return null;
        }
        throw error;
    }
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

/** The context that the URL is sealed for. The text can be unsealed only with the same context, so that it is of no use in another row. */
function urlContext(exporterId: string): string {
    return `exporter:${exporterId}:url`;
}

/** Whether every process that sends can unseal a sealed URL. Those of earlier releases would take it for an invalid URL. */
async function canAllUnseal({ deliveries }: SealingParts): Promise<boolean> {
    return (await deliveries.sessions()).every(({ opensUrls }) => opensUrls);
}

/** The URL of an exporter's receiver as it is to be stored now. */
export async function urlToStore(id: string, url: string, context: SealingParts): Promise<string> {
    return (await canAllUnseal(context)) ? sealUrl(context.keyRing, id, url) : url;
}

/** Whether the URL is sealed with the current key. */
function isWellSealed(exporter: StoredExporter, keyRing: KeyRing): boolean {
    const [text] = sealedUrl(exporter);
    return text !== undefined && !isOutdated(text.sealed, keyRing);
}

/**
 * Seals the URLs that are stored unsealed, by an earlier release or for one that still sends, and seals again those that a former key has
 * sealed. It takes one exporter at a time, so that it can be cut off anywhere. While a process of such a release sends, nothing is sealed,
 * since that process could not unseal it.
 *
 * @returns Whether all are sealed with the current key; if not, it is to be tried again.
 */
async function sealUrls(context: SealingParts): Promise<boolean> {
    if (!(await canAllUnseal(context))) {
        return false;
    }

    const { exporters: store, keyRing } = context;
    for (const exporter of (await store.list({ patient: true })).filter((one) => !isWellSealed(one, keyRing))) {
        const { id, url: before } = exporter;
        await store.update(id, { url: sealUrl(keyRing, id, unsealUrl(exporter, keyRing)), expectedUrl: before }).catch((error: unknown) => {
            // Somebody has just changed or removed it.
            if (!(error instanceof ScanwireError && ['CONFLICT', 'NOT_FOUND'].includes(error.code))) {
                throw error;
            }
        });
    }
    return true;
}

/** Milliseconds between two checks whether processes of the version before still send. */
const SEAL_EVERY = 15_000;

/** Seals the URLs of exporters as soon as all processes that send can unseal them. */
export function urlSealing(context: SealingParts): { start(): Promise<void>; stop(): Promise<void> } {
    let timer: NodeJS.Timeout | undefined;
    let work: Promise<void> = Promise.resolve();

    async function seal(): Promise<void> {
        if (await sealUrls(context)) {
            clearInterval(timer);
        }
    }

    function sealOnce(): Promise<void> {
        work = seal().catch(context.onError);
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
