import { withBrackets } from '../../addresses.ts';
import { type Columns, given, noteData } from './metasploit-columns.ts';
import type { ScannedHost } from './read-xml.ts';
import { vulnInfo, vulnName } from './scanner-text.ts';

/*
 * What `db_export` has behind all hosts. Their ports were told before, and need not be those of services that the host still has, so this is of the host as a
 * whole. Each row is a host of its own here, so its type or name tells it apart from the other rows of the host.
 */

/** A web site as a note. */
export function webSite(columns: Columns): ScannedHost {
    const [port, vhost, comments, options] = ['port', 'vhost', 'comments', 'options'].map((column) => given(columns, column));
    const data = {
        ...(vhost !== undefined && { vhost }),
        ...(port !== undefined && { port: Number(port) }),
        ssl: columns.ssl === 'true',
        ...(comments !== undefined && { comments }),
        ...(options !== undefined && { options: noteData(options) }),
    };
    const ntype = ['metasploit.web_site', port, vhost].filter((part) => part !== undefined).join('.');
    return { ...hostOf(columns), notes: [{ ntype, data }] };
}

/** What was found wrong with a page, as a vulnerability that is called after the page as well. The request is left out: it may hold somebody's cookies. */
export function webVuln(columns: Columns): ScannedHost {
    const told = (column: string, before = ''): string => (given(columns, column) === undefined ? '' : `${before}${columns[column]}`);
    const where = `${told('method')} ${pageUrl(columns)}${told('pname', ', parameter ')}`.trim();
    const info = [
        [told('risk', 'Risk: '), told('confidence', 'confidence: '), told('category', 'category: ')]
            .filter((part) => part !== '')
            .join(', '),
        where,
        told('description'),
        told('blame'),
        told('payload', 'Payload: '),
        told('proof', 'Proof: '),
    ];
    const vuln = {
        name: vulnName(`${told('name') || told('category')}: ${where}`),
        info: vulnInfo(info.filter((part) => part !== '').join('\n\n')),
    };
    return { ...hostOf(columns), vulns: [vuln] };
}

function hostOf(columns: Columns): ScannedHost {
    const address = given(columns, 'host');
    return address === undefined ? {} : { address };
}

function pageUrl(columns: Columns): string {
    const name = given(columns, 'vhost') ?? given(columns, 'host') ?? '';
    const query = given(columns, 'query');
    const origin = `${columns.ssl === 'true' ? 'https' : 'http'}://${withBrackets(name)}:${columns.port}`;
    return `${origin}${given(columns, 'path') ?? '/'}${query === undefined ? '' : `?${query}`}`;
}
