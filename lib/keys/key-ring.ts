import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { checked } from '../schema-validation.ts';

/** The keys of a ring. */
export interface KeyRingOptions {
    /** Id of the key that seals from now on. */
    readonly current: string;
    /** Every key that may still be needed to open something: id to 32 bytes. Ids are letters, digits, `-` and `_`. */
    readonly keys: Readonly<Record<string, Uint8Array>>;
}

/**
 * Seals secrets at rest with AES-256-GCM. A sealed text names the key that made it, so that keys can be rotated: add a new
 * one, make it current, and keep the old one until nothing needs it.
 */
export interface KeyRing {
    readonly current: string;
    readonly ids: ReadonlySet<string>;

    /**
     * @param context What the secret belongs to, for example `exporter:<id>`; a sealed text opens only in the same context,
     *     so it cannot be moved to another row.
     */
    seal(secret: string, context: string): string;

    /** @throws ScanwireError `UNSEALABLE` when the key is not in the ring, the context differs or the text was altered. */
    open(sealed: string, context: string): string;
}

/**
 * No ring opens this text, not one of another process either: a key that opens most of its texts does not open it, or it is not sealed at
 * all. The ring is right, and the row is wrong. Its code is `UNSEALABLE`.
 */
export class AlteredText extends ScanwireError {
    constructor(message: string, cause?: unknown) {
        super('UNSEALABLE', message, { cause });
    }
}

/** Texts of a key that are remembered in each way. */
const MAX_REMEMBERED = 10_000;

/** What a key has opened and what not, by what that was sealed for. What does not fit shows nothing: no key counts as right for what was forgotten. */
class Openings {
    readonly #opened = new Set<string>();
    readonly #refused = new Set<string>();
    /** What this ring has sealed itself opens whatever the bytes of its key are. */
    readonly #sealed = new Set<string>();

    sealed(context: string): void {
        addWithin(this.#sealed, context);
    }

    opened(context: string): void {
        this.#refused.delete(context);
        if (this.#sealed.size < MAX_REMEMBERED && !this.#sealed.has(context)) {
            addWithin(this.#opened, context);
        }
    }

    /** @returns Whether the key opens most of its texts. */
    refused(context: string): boolean {
        this.#opened.delete(context);
        addWithin(this.#refused, context);
        return this.#opened.size > this.#refused.size;
    }
}

function addWithin(contexts: Set<string>, context: string): void {
    if (contexts.size < MAX_REMEMBERED) {
        contexts.add(context);
    }
}

const FORM = /^v1\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;
/** What a version to come may seal, and can open. */
const LATER_FORM = /^v(?!1\.)\d+\./;
/** Length of a sealing key, in bytes. */
export const KEY_BYTES: number = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const optionsSchema = Joi.object<KeyRingOptions, true>({
    current: Joi.string().required(),
    keys: Joi.object().required(),
}).required();

/** @throws ScanwireError `MISCONFIGURED` when the current key is missing, an id is malformed or a key is not 32 bytes. */
export function keyRing(options: KeyRingOptions): KeyRing {
    const { current, keys } = checked(optionsSchema, options, { subject: 'keyRing options', code: 'MISCONFIGURED' });
    const ring = new Map(Object.entries(keys));
    const openings = new Map(Object.keys(keys).map((id) => [id, new Openings()]));
    assertUsable(current, ring);

    return {
        current,
        ids: new Set(ring.keys()),

        seal(secret, context) {
            openings.get(current)?.sealed(context);
            const nonce = randomBytes(NONCE_BYTES);
            const cipher = createCipheriv('aes-256-gcm', keyOf(ring, current), nonce).setAAD(Buffer.from(context));
            const sealed = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
            return `v1.${current}.${sealed.toString('base64url')}`;
        },

        open(sealed, context) {
            const [, id = '', text = ''] = FORM.exec(sealed) ?? [];
            if (id === '' && !LATER_FORM.test(sealed)) {
                throw new AlteredText('Cannot open a text that is not sealed');
            }
            const key = keyOf(ring, id);
            const bytes = Buffer.from(text, 'base64url');
            try {
                const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
                    .setAAD(Buffer.from(context))
                    .setAuthTag(bytes.subarray(-TAG_BYTES));
                const secret = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
                openings.get(id)?.opened(context);
                return secret;
            } catch (cause) {
                if (openings.get(id)?.refused(context) === true) {
                    throw new AlteredText(`Cannot open a text sealed with key ${id}: it was altered or sealed for something else`, cause);
                }
                const reason = 'the key has other bytes, or the text was altered or sealed for something else';
                throw new ScanwireError('UNSEALABLE', `Cannot open a text sealed with key ${id}: ${reason}`, { cause });
            }
        },
    };
}

/** The same ring, which opens each text once and keeps what it holds in memory: for as long as somebody keeps this. */
export function rememberingRing(ring: KeyRing): KeyRing {
    const opened = new Map<string, string>();
    return {
        current: ring.current,
        ids: ring.ids,
        seal: (secret, context) => ring.seal(secret, context),

        open(sealed, context) {
            const key = `${context} ${sealed}`;
            const secret = opened.get(key) ?? ring.open(sealed, context);
            opened.set(key, secret);
            return secret;
        },
    };
}

/** Id of the key that made a sealed text; null for a text of another form. */
export function sealingKeyId(sealed: string): string | null {
    return FORM.exec(sealed)?.[1] ?? null;
}

/** A secret at rest and the context that it was sealed for. */
export interface SealedText {
    readonly sealed: string;
    readonly context: string;
}

/** What is opened; null where the key ring cannot open it. */
export function ifOpens<T>(open: () => T): T | null {
    try {
        return open();
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'UNSEALABLE') {
            return null;
        }
        throw error;
    }
}

/** So many texts of a key are tried where the first does not open: one of them may be altered, and most of them must open. */
const TRIED = 10;

/**
 * Refuses a key ring that does not fit what is stored: at the start, not secret by secret when each is needed. Each sealing key has to
 * open its first text, or most of the first ten, because a ring with other bytes under the same id would go on to seal what no other process can open.
 *
 * @throws ScanwireError `MISCONFIGURED`, field `keyRing`, that names the context and the key.
 */
export function assertOpens(ring: KeyRing, texts: readonly SealedText[]): void {
    const ids = new Set(texts.map(({ sealed }) => sealingKeyId(sealed)));
    for (const id of ids) {
        assertOpensMost(ring, texts.filter(({ sealed }) => sealingKeyId(sealed) === id).slice(0, TRIED));
    }
}

function assertOpensMost(ring: KeyRing, [first, ...others]: readonly SealedText[]): void {
    const refusal = first === undefined ? null : refusalToOpen(ring, first);
    const refused = refusal === null ? 0 : 1 + others.filter((text) => refusalToOpen(ring, text) !== null).length;
    if (refusal !== null && 2 * refused >= 1 + others.length) {
        throw refusal;
    }
}

function refusalToOpen(ring: KeyRing, { sealed, context }: SealedText): ScanwireError | null {
    try {
        ring.open(sealed, context);
        return null;
    } catch (cause) {
        const reason = cause instanceof ScanwireError ? `: ${cause.message}` : '';
        const message = `The key ring does not fit what is stored for ${context}${reason}${remedy(ring, sealed)}`;
        return new ScanwireError('MISCONFIGURED', message, { field: 'keyRing', cause });
    }
}

/** What to do, as the end of a sentence; nothing for the text of a ring of the application's own. */
function remedy({ ids }: KeyRing, sealed: string): string {
    const id = sealingKeyId(sealed);
    if (id === null) {
        return '';
    }

    return ids.has(id)
        ? `; the key ${id} of the ring must be the one that sealed it, byte by byte`
        : `; add the key ${id} of the ring that sealed it, beside the current one`;
}

/** Whether another key of a ring than the current one has sealed this. False for the text of a ring of the application's own, which has a form of its own. */
export function isSealedByFormerKey(sealed: string, { current }: Pick<KeyRing, 'current'>): boolean {
    const key = sealingKeyId(sealed);
    return key !== null && key !== current;
}

/** What sealing again, with the current key, has come to, batch by batch. */
export interface Resealed {
    /** How many keys or exporters are sealed with the current key now and were not before. */
    readonly sealed: number;
    /** What stays as it is because the ring cannot open it, by what it is sealed for, for example `api-key:<id>`. */
    readonly unopened: readonly string[];
    /** Where the next batch goes on; null when this was the last. */
    readonly next: string | null;
}

/** Outdated texts as the current key seals them, by what they were, and what each of the others that cannot be opened was sealed for. */
export function reseal(
    ring: KeyRing,
    texts: readonly SealedText[],
): { readonly resealed: ReadonlyMap<string, string>; readonly unopened: readonly string[] } {
    const resealed = new Map<string, string>();
    const unopened: string[] = [];
    for (const { sealed, context } of texts.filter((text) => isSealedByFormerKey(text.sealed, ring))) {
        const again = ifOpens(() => ring.seal(ring.open(sealed, context), context));
        if (again === null) {
            unopened.push(context);
        } else {
            resealed.set(sealed, again);
        }
    }
    return { resealed, unopened };
}

function assertUsable(current: string, ring: ReadonlyMap<string, Uint8Array>): void {
    if (!ring.has(current)) {
        throw new ScanwireError('MISCONFIGURED', `Missing key ${current}: the current key must be in the key ring`, { field: 'current' });
    }

    for (const [id, key] of ring) {
        if (!/^[A-Za-z0-9_-]+$/.test(id)) {
            throw new ScanwireError(
                'MISCONFIGURED',
                'keyRing options: keys has an id with other characters than letters, digits, "-" and "_"',
                { field: 'keys' },
            );
        }

        if (!(key instanceof Uint8Array) || key.byteLength !== KEY_BYTES) {
            const found = key instanceof Uint8Array ? `, and has ${key.byteLength}` : '';
            const reason = `it must be ${KEY_BYTES} bytes${found} (openssl rand -base64 ${KEY_BYTES} makes one, to be read as base64)`;
            throw new ScanwireError('MISCONFIGURED', `Invalid key ${id} in the key ring: ${reason}`, { field: `keys.${id}` });
        }
    }
}

function keyOf(ring: ReadonlyMap<string, Uint8Array>, id: string): Uint8Array {
    const key = ring.get(id);
    if (key === undefined) {
        throw new ScanwireError(
            'UNSEALABLE',
            id === '' ? 'Cannot open a text of a form that this version does not know' : `Missing key ${id} in the key ring`,
        );
    }

    return key;
}
