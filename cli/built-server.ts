import { server as hapiServer, type Server, type ServerOptions } from '@hapi/hapi';
import { withBrackets } from '../lib/addresses.ts';
import { ScanwireError } from '../lib/errors.ts';

/**
 * A server that others reach by an address or a name; it does not listen yet.
 *
 * @param option That which names the host.
 * @throws ScanwireError `MISCONFIGURED` for a host that hapi does not take. Its own message tells all options, the private key among them, so nothing of it is
 *     kept, and it is no cause.
 */
export function builtServer(options: ServerOptions & { readonly host: string }, option = 'host'): Server {
    try {
        return hapiServer(options);
    } catch (error) {
        if (!(error as Error).message.startsWith('Invalid server options')) {
            throw error;
        }
    }

    const message = `--${option} must name an address, without a zone, or a name of letters, digits, hyphens and dots, such as 127.0.0.1, ::1 or scans.example.com`;
    throw new ScanwireError('MISCONFIGURED', message, { field: option });
}

/** Where a server is reached that listens on this host. */
export function uriOf({ info: { protocol, host, port } }: Server): string {
    return `${protocol}://${withBrackets(host)}:${port}`;
}

/** The same for whoever sits at the machine: what listens on all addresses is reached by name. */
export function localUriOf(server: Server): string {
    const { protocol, port } = server.info;
    // A URL has one text for each address.
    const { hostname } = new URL(uriOf(server));
    return ['0.0.0.0', '[::]'].includes(hostname) ? `${protocol}://localhost:${port}` : uriOf(server);
}
