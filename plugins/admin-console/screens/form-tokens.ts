import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Request, ServerStateCookieOptions } from '@hapi/hapi';

/*
 * That a form which changes something was filled in on a page of ours, by whoever looked at it. The browser says where a request comes
 * from; besides, every form has a token that only a page of ours can hold: it is made with a secret that this browser alone keeps, in a
 * cookie, so no process need know of another, and it is good for that form only.
 */

/** Name of the field with the token. */
export const TOKEN_FIELD = 'formToken';

/** Name of the cookie with the secret of a browser. */
export const FORM_COOKIE = 'scanwire-forms';

const SECRET_BYTES = 32;
const SECRET = /^[A-Za-z0-9_-]{43}$/;
const SALT_BYTES = 16;
const TOKEN = /^([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;

/** Secrets of a browser that are looked at. */
const MAX_SECRETS = 16;

/**
 * The secrets of the browser that asks, none when it has none. It has several where the paths of pages are below those of others, and where a
 * name beside the server's has set one: whoever can do that must not keep people from their forms. The last one is that of the shortest path, which is
 * sent to every page and every form; others may be sent to a page and not to its form, or the other way round.
 */
export function formSecrets({ state }: Pick<Request, 'state'>): readonly string[] {
    const kept: readonly unknown[] = [state[FORM_COOKIE]].flat();
    return kept.filter((value): value is string => typeof value === 'string' && SECRET.test(value)).slice(-MAX_SECRETS);
}

/** A new random secret, which tokens of forms are made with. */
export function newFormSecret(): string {
    return randomBytes(SECRET_BYTES).toString('base64url');
}

/** How the secret is kept: no script reads it, no other site has it sent but by a link, and it ends with the browser. */
export function formCookie(path: string, isSecure: boolean): ServerStateCookieOptions {
    return { encoding: 'none', isHttpOnly: true, isSecure, isSameSite: 'Lax', path, ttl: null, strictHeader: true };
}

/** The token of the form that goes to `action`. It differs each time, so that what is compressed with it tells nothing of it. */
export function formToken(secret: string, action: string, salt: string = randomBytes(SALT_BYTES).toString('base64url')): string {
    const code = createHmac('sha256', secret).update(`${salt} ${action}`).digest('base64url');
    return `${salt}.${code}`;
}

/** Whether the token is one of {@link formToken}. */
export function isFormToken(token: string, secret: string, action: string): boolean {
    const [, salt] = TOKEN.exec(token) ?? [];
    return salt !== undefined && timingSafeEqual(Buffer.from(formToken(secret, action, salt)), Buffer.from(token));
}
