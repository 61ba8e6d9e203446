/** A page for people that shows the document of the API and tries its requests. It holds no data, and calls nobody but this server. */
import type { Lifecycle, ResponseObject, Server } from '@hapi/hapi';
import { READABLE_COOKIES, unsniffed } from '../route-parts.ts';
import { contentPolicy, packagedFile } from '../web-page.ts';
import { fileHandler } from './docs-files.ts';

const PACKAGE = 'swagger-ui-dist';

const OWN_ONLY = contentPolicy({ formAction: "'none'", frameAncestors: "'none'" });

/**
 * Adds the page, without authentication: it asks for a key, and keeps that in its memory alone.
 *
 * @param path Of the page, for example `/api-docs`.
 * @param document Path of the document that it shows.
 * @throws ScanwireError `MISCONFIGURED` without the package `swagger-ui-dist`.
 */
export function addDocsPage(server: Server, path: string, document: string): void {
    const add = (name: string, type: string, read: Lifecycle.Method): void => {
        const handler: Lifecycle.Method = async (request, h, error) => {
            const response = (await read.call(null, request, h, error)) as ResponseObject;
            return response.type(type).header('content-security-policy', OWN_ONLY).header('referrer-policy', 'no-referrer');
        };
        server.route({
            method: 'GET',
            path: `${path}${name}`,
            handler,
            options: {
                auth: false,
                cache: { otherwise: 'no-cache' },
                ext: { onPreResponse: unsniffed },
                state: READABLE_COOKIES,
            },
        });
    };
    const prefix = server.realm.modifiers.route.prefix ?? '';
    const written = (text: string): Lifecycle.Method => {
        return (_, h) => h.response(text);
    };
    const packaged = (name: string): Lifecycle.Method => fileHandler(packagedFile(PACKAGE, name, 'rest-api-v2 options: openapi.page'));

    // Before any route is there: without the package there is to be none.
    const [style, bundle] = [packaged('swagger-ui.css'), packaged('swagger-ui-bundle.js')];
    add('', 'text/html; charset=utf-8', written(page(`${prefix}${path}`)));
    add('/start.js', 'text/javascript; charset=utf-8', written(start(document)));
    add('/page.css', 'text/css; charset=utf-8', written(STYLE));
    add('/swagger-ui.css', 'text/css; charset=utf-8', style);
    add('/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', bundle);
}

function page(at: string): string {
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>REST API</title>
<link rel="stylesheet" href="${at}/swagger-ui.css">
<link rel="stylesheet" href="${at}/page.css">
</head>
<body>
<form id="ask">
<label for="key">API key</label>
<input id="key" type="password" autocomplete="off" spellcheck="false" required>
<button>Show the API</button>
<p id="said" role="status">The key stays in the memory of this page.</p>
</form>
<main id="api"></main>
<script src="${at}/swagger-ui-bundle.js"></script>
<script src="${at}/start.js"></script>
</body>
</html>
`;
}

const STYLE = `body { margin: 0; font-family: system-ui, sans-serif; }
#ask { padding: 1rem; }
#ask[hidden] { display: none; }
#said { color: #444; }
`;

/** The key goes into requests to this server alone; a document that may be had without one is shown at once. */
function start(document: string): string {
    return `'use strict';
(() => {
    const form = window.document.getElementById('ask');
    const said = window.document.getElementById('said');
    const here = ${JSON.stringify(document)};

    async function show(key) {
        const headers = key === '' ? {} : { token: key };
        const answer = await fetch(here, { headers, credentials: 'same-origin', cache: 'no-store' });
        if (!answer.ok) {
            return false;
        }

        form.hidden = key !== '';
        window.SwaggerUIBundle({
            spec: await answer.json(),
            dom_id: '#api',
            validatorUrl: null,
            persistAuthorization: false,
            queryConfigEnabled: false,
            requestInterceptor(request) {
                if (key !== '' && new URL(request.url, window.location.href).origin === window.location.origin) {
                    request.headers.token = key;
                }
                return request;
            },
        });
        return true;
    }

    form.addEventListener('submit', (event) => {
        event.preventDefault();
        const input = window.document.getElementById('key');
        const key = input.value.trim();
        input.value = '';
        show(key).then(
            (shown) => {
                said.textContent = shown ? '' : 'This key may not read the API.';
            },
            () => {
                said.textContent = 'The server does not answer.';
            },
        );
    });
    show('').catch(() => {});
})();
`;
}
