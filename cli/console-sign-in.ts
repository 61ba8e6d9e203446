import { createHash, randomBytes } from 'node:crypto';
import cookie from '@hapi/cookie';
import type { Lifecycle, Request, ResponseToolkit, RouteOptions, Server } from '@hapi/hapi';
import { addressBlock } from '../lib/addresses.ts';
import type { AuditTrail } from '../lib/audit/audit-trail.ts';
import type { Clock } from '../lib/clock.ts';
import { isUsable } from '../lib/optional-packages.ts';
import { OPERATOR } from '../plugins/admin-console/audit.ts';
import { plugin as adminConsole } from '../plugins/admin-console/index.ts';
import { texts } from '../plugins/admin-console/screens/texts.ts';
import type { System } from '../plugins/admin-console/system.ts';
import { contentPolicy, ICON } from '../plugins/web-page.ts';
import { localUriOf } from './built-server.ts';

/*
 * The pages of `scanwire serve`, and how somebody comes in: whoever can run a command on the data folder is its operator, and gets a link
 * from it that signs one browser in. There are no passwords, and nothing of a sign-in outlives the process.
 */

/** A link that signs one browser in, once. */
export interface SignInLink {
    readonly url: string;
    readonly expiresAt: Date;
}

/** Where people sign in. */
export interface SignIn {
    /** A new link; the one before it stays good for its time. */
    link(): SignInLink;
}

const words = texts.signIn;

const PREFIX = '/admin';
const STRATEGY = 'console';
const PACKAGES = ['@picocss/pico', 'htmx.org'];

/** How long a link and a sign-in last, in milliseconds. */
const [LINK_TIME, SIGN_IN_TIME] = [5 * 60_000, 12 * 3_600_000];
/** Sign-ins that there may be at once: the oldest ends for a new one. */
const MAX_SIGN_INS = 100;
/** Links that lead nowhere, of one address in a minute, after which it is told to wait. One that is good is taken all the same: behind a proxy all have one address. */
const MAX_WRONG = 10;
const MINUTE = 60_000;
/** Addresses that are remembered for that. */
const MAX_ADDRESSES = 10_000;

/** The pages in a server that speaks TLS; null where a package that they load is not installed, or too old. It does not listen yet. */
export async function addConsole(server: Server, system: System, clock: Clock): Promise<SignIn | null> {
    if (!PACKAGES.every((name) => isUsable(name, 'The console'))) {
        return null;
    }

    const signIns = new SignIns(clock);
    await server.register(cookie);
    server.auth.strategy(STRATEGY, 'cookie', {
        cookie: {
            name: 'scanwire-console',
            password: randomBytes(32).toString('base64'),
            path: PREFIX,
            isSecure: true,
            isHttpOnly: true,
            isSameSite: 'Strict',
            ttl: SIGN_IN_TIME,
        },
        redirectTo: `${PREFIX}/sign-in`,
        validate: async (_, session) => ({ isValid: signIns.has((session as { readonly id?: unknown }).id) }),
    });
    await server.register({
        plugin: adminConsole,
        options: {
            system,
            auth: STRATEGY,
            authorize: () => true,
            // Links are for whoever runs commands on the data folder.
            actor: () => OPERATOR.actor,
            routes: false,
            screens: { prefix: PREFIX, signOut: `${PREFIX}/sign-out` },
        },
    });
    addSignIn(server, signIns, system.audit);
    return {
        link() {
            const { token, expiresAt } = signIns.offer();
            return { url: `${localUriOf(server)}${PREFIX}/sign-in?link=${token}`, expiresAt };
        },
    };
}

/** Lets the socket of a data folder give out links. */
export function addSignInLinks(admin: Server, signIn: SignIn | null): void {
    admin.route({
        method: 'POST',
        path: '/sign-in',
        handler: (_, h) =>
            signIn?.link() ??
            h
                .response({ error: { code: 'MISCONFIGURED', message: 'The pages need packages: npm install @picocss/pico@2 htmx.org@4' } })
                .code(409),
    });
}

/** Who is signed in, and the links by which others may. Kept by their digests. */
class SignIns {
    readonly #clock: Clock;
    readonly #links = new Map<string, number>();
    readonly #ids = new Map<string, number>();
    #wrong = { until: 0, byAddress: new Map<string, number>() };

    constructor(clock: Clock) {
        this.#clock = clock;
    }

    offer(): { readonly token: string; readonly expiresAt: Date } {
        const until = this.#now() + LINK_TIME;
        return { token: added(this.#links, until), expiresAt: new Date(until) };
    }

    /** The id of a new sign-in; null for a link that was used, has ended or was never given out. */
    take(token: string): string | null {
        const now = this.#now();
        return taken(this.#links, token, now) ? added(this.#ids, now + SIGN_IN_TIME) : null;
    }

    /** Counts a link that leads nowhere. @returns Whether there were more of the address in this minute than it may try. */
    triedTooOften(address: string): boolean {
        const now = this.#now();
        if (now >= this.#wrong.until || this.#wrong.byAddress.size >= MAX_ADDRESSES) {
            this.#wrong = { until: now + MINUTE, byAddress: new Map() };
        }
        const tries = (this.#wrong.byAddress.get(address) ?? 0) + 1;
        this.#wrong.byAddress.set(address, tries);
        return tries > MAX_WRONG;
    }

    has(id: unknown): boolean {
        return typeof id === 'string' && (this.#ids.get(digest(id)) ?? 0) > this.#now();
    }

    end(id: unknown): void {
        this.#ids.delete(digest(String(id)));
    }

    #now(): number {
        return this.#clock().getTime();
    }
}

function digest(token: string): string {
    return createHash('sha256').update(token).digest('base64');
}

function added(tokens: Map<string, number>, until: number): string {
    const token = randomBytes(32).toString('base64url');
    tokens.set(digest(token), until);
    const [oldest] = tokens.keys();
    if (tokens.size > MAX_SIGN_INS && oldest !== undefined) {
        tokens.delete(oldest);
    }
    return token;
}

function taken(tokens: Map<string, number>, token: string, now: number): boolean {
    const key = digest(token);
    const until = tokens.get(key) ?? 0;
    return tokens.delete(key) && until > now;
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const MAX_FORM = 1024;

/** To open the link shows a button: what looks at links before people do, such as a mail program, uses none up. */
function addSignIn(server: Server, signIns: SignIns, audit: AuditTrail): void {
    const open = { auth: false, cache: { otherwise: 'no-store' }, state: { parse: false, failAction: 'ignore' } } as const;
    const form = { parse: true, allow: 'application/x-www-form-urlencoded', maxBytes: MAX_FORM } as const;
    const signOut: Lifecycle.Method = (request, h) => {
        signIns.end((request.auth.artifacts as { readonly id?: unknown }).id);
        request.cookieAuth.clear();
        return h.redirect(`${PREFIX}/sign-in`).code(303);
    };
    const signedIn: RouteOptions = { auth: { strategies: [STRATEGY] }, cache: { otherwise: 'no-store' } };
    server.route([
        { method: 'GET', path: `${PREFIX}/sign-in`, options: open, handler: ({ query }, h) => signInPage(h, String(query.link ?? '')) },
        {
            method: 'POST',
            path: `${PREFIX}/sign-in`,
            options: { ...open, payload: form },
            handler: (request, h) => enter(request, h, signIns, audit),
        },
        { method: 'GET', path: `${PREFIX}/sign-out`, options: signedIn, handler: (_, h) => signOutPage(h) },
        { method: 'POST', path: `${PREFIX}/sign-out`, options: { ...signedIn, payload: form }, handler: signOut },
    ]);
}

async function enter(request: Request, h: ResponseToolkit, signIns: SignIns, audit: AuditTrail) {
    const { link } = (request.payload ?? {}) as { readonly link?: unknown };
    const id = signIns.take(typeof link === 'string' ? link : '');
    if (id === null) {
        return signIns.triedTooOften(addressBlock(request.info.remoteAddress))
            ? page(h, words.title, `<p role="alert">${words.tooMany}</p>`).code(429)
            : page(h, words.title, `<p role="alert">${words.used} ${HOW}</p>`).code(403);
    }

    request.cookieAuth.set({ id });
    const deed = { actor: OPERATOR.actor, operation: 'signIn', subject: request.info.remoteAddress };
    // Whoever looks why the store is away must be let in.
    await audit.record(deed, async () => {}).catch((error: unknown) => request.log(['scanwire', 'error'], error as Error));
    return h.redirect(PREFIX).code(303);
}

const HOW = words.how.replace('%', '<code>scanwire console</code>');

function signInPage(h: ResponseToolkit, link: string) {
    return page(
        h,
        words.title,
        TOKEN.test(link)
            ? `<p>${words.about}</p><form method="post" action="${PREFIX}/sign-in"><input type="hidden" name="link" value="${link}"><button>${words.button}</button></form>`
            : `<p>${words.link} ${HOW}</p>`,
    );
}

function signOutPage(h: ResponseToolkit) {
    return page(h, texts.signOut, `<form method="post" action="${PREFIX}/sign-out"><button>${texts.signOut}</button></form>`);
}

/** @param content HTML. */
function page(h: ResponseToolkit, title: string, content: string) {
    return h
        .response(
            `<!DOCTYPE html>
<html lang="${texts.locale}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · scanwire</title>
${ICON}
<link rel="stylesheet" href="${PREFIX}/assets/pico.css">
<link rel="stylesheet" href="${PREFIX}/assets/screens.css">
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`,
        )
        .type('text/html; charset=utf-8')
        .header('content-security-policy', contentPolicy({ formAction: "'self'", frameAncestors: "'none'" }))
        .header('referrer-policy', 'no-referrer')
        .header('x-content-type-options', 'nosniff');
}
