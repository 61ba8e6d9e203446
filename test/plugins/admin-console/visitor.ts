import type { Server, ServerInjectResponse } from '@hapi/hapi';
import { decodeHTML } from 'entities';
import { admin } from './host.ts';

/** A page as a visitor without scripts sees it. */
export interface Seen {
    readonly status: number;
    readonly html: string;
    readonly headers: ServerInjectResponse['headers'];
    /** Path of the page, after redirects. */
    readonly path: string;
}

const FIELD =
    /<input\b([^>]*)>|<textarea\b([^>]*)>\n?([^<]*)<\/textarea>|<select\b([^>]*)>([\s\S]*?)<\/select>|<button\b([^>]*\bname=[^>]*)>/g;

/** A browser without scripts: it keeps cookies, follows redirects and sends the forms of a page with all their fields. */
export class Visitor {
    readonly #server: Server;
    readonly #headers: Readonly<Record<string, string>>;
    readonly #cookies = new Map<string, string>();

    constructor(server: Server, headers: Readonly<Record<string, string>> = admin) {
        this.#server = server;
        this.#headers = headers;
    }

    async get(path: string): Promise<Seen> {
        return await this.#ask('GET', path);
    }

    /** Sends a form of the page; `fields` are what is typed, null for a field that is left out. */
    async send(page: Seen, action: string, fields: Readonly<Record<string, string | readonly string[] | null>> = {}): Promise<Seen> {
        const form = new URLSearchParams(fieldsOf(page.html, action).filter(([name]) => fields[name] === undefined));
        for (const [name, value] of Object.entries(fields)) {
            for (const one of value === null ? [] : [value].flat()) {
                form.append(name, one);
            }
        }
        return await this.#ask('POST', action, form.toString());
    }

    /** Sends whatever it is told, for what no page would send. */
    async post(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Seen> {
        return await this.#ask('POST', path, body, headers);
    }

    async #ask(method: 'GET' | 'POST', url: string, payload?: string, more: Readonly<Record<string, string>> = {}): Promise<Seen> {
        const cookie = Array.from(this.#cookies, (pair) => pair.join('=')).join('; ');
        const own = payload === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
        const headers = { ...this.#headers, ...(cookie !== '' && { cookie }), ...own, ...more };
        const answer = await this.#server.inject({ method, url, headers, ...(payload !== undefined && { payload }) });
        for (const set of [answer.headers['set-cookie'] ?? []].flat()) {
            const [pair = ''] = set.split(';');
            this.#cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
        }
        const to = answer.headers.location;
        return answer.statusCode >= 300 && answer.statusCode < 400 && to !== undefined
            ? await this.#ask('GET', new URL(to, 'http://localhost').pathname + new URL(to, 'http://localhost').search)
            : { status: answer.statusCode, html: answer.payload, headers: answer.headers, path: url };
    }
}

/** What a form of the page would send as it stands. @throws Error when there is no such form. */
export function fieldsOf(html: string, action: string): [string, string][] {
    const form = html.split('<form ').find((part) => part.includes(`action="${action}"`));
    if (form === undefined) {
        throw new Error(`There is no form for ${action} in:\n${html}`);
    }

    const [inside = ''] = form.split('</form>');
    return Array.from(inside.matchAll(FIELD)).flatMap(([, input, area, text, select, options]) => {
        const name = attribute(input ?? area ?? select ?? '', 'name');
        if (name === null || (input !== undefined && /type="(?:checkbox|radio)"/.test(input) && !/\bchecked\b/.test(input))) {
            return [];
        }

        const chosen = options?.match(/<option\b[^>]*selected[^>]*>/)?.[0] ?? options?.match(/<option\b[^>]*>/)?.[0];
        return [[name, attribute(input ?? chosen ?? '', 'value') ?? decodeHTML(text ?? '')]];
    });
}

function attribute(tag: string, name: string): string | null {
    const value = new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1];
    return value === undefined ? null : decodeHTML(value);
}
