import type { ServerResponse } from 'node:http';

/** A token that none of them gives to whom it is for. */
export const TOKEN = 't0ken-of-the-first';
/** What a client has to prove itself by, and some of them repeat. */
export const SECRET = 'hidden-client-secret';

/** Answers as a token server does. */
export const json = (response: ServerResponse, body: object, status = 200): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

/** What a good answer says. */
export function bearer(token: string, more: object = {}): object {
    return { access_token: token, token_type: 'Bearer', expires_in: 3600, ...more };
}

/** What token servers answer that they should not. */
export const HOSTILE_TOKEN_SERVERS: readonly ((response: ServerResponse) => void)[] = [
    (response) => json(response, bearer('a b')),
    (response) => json(response, bearer('a\r\nX-Admin: 1')),
    (response) => json(response, bearer('')),
    (response) => json(response, bearer('a'.repeat(9_000))),
    (response) => json(response, bearer(TOKEN, { token_type: 'mac' })),
    (response) => json(response, bearer(TOKEN, { token_type: 'dpop' })),
    (response) => json(response, bearer(TOKEN, { expires_in: -5 })),
    (response) => json(response, { error: `${SECRET} was wrong`, error_description: SECRET }, 400),
    (response) => json(response, { error: 'invalid_client', error_description: SECRET }, 401),
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(`<html>${SECRET}`),
    (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"access'),
    (response) => response.writeHead(204).end(),
    (response) => response.writeHead(700).end(),
    (response) => response.writeHead(200, { 'x-long': 'a'.repeat(20_000) }).end(),
    (response) => response.socket?.destroy(),
    (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('a'.repeat(70_000)),
];
