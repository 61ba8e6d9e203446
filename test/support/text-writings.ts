/** Ways to write a text, by what writes so. */
export const WRITINGS: Readonly<Record<string, (text: string) => string>> = {
    'as it is': (text) => text,
    JSON: (text) => JSON.stringify(text).slice(1, -1),
    'JSON of PHP': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
    'JSON in which all is escaped': (text) =>
        [...Array(text.length).keys()].map((at) => unit(text, at, (code) => `\\u${hex(code, 4)}`)).join(''),
    'JSON in JSON': (text) => JSON.stringify(JSON.stringify({ text })),
    HTML: (text) => text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`),
    'HTML by names': (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
    'HTML by hexadecimal numbers': (text) => text.replaceAll(/[&<>"'/=]/g, (sign) => `&#x${hex(sign.charCodeAt(0), 2).toUpperCase()};`),
    'JSON in HTML': (text) => JSON.stringify({ text }).replaceAll('&', '&amp;').replaceAll('"', '&quot;'),
    'a URL': encodeURIComponent,
    'a URL that keeps its signs': encodeURI,
    'a URL in small letters': (text) => encodeURIComponent(text).replaceAll(/%../g, (escaped) => escaped.toLowerCase()),
    'a form': (text) => new URLSearchParams({ text }).toString(),
    base64: (text) => Buffer.from(text).toString('base64'),
    'base64 behind one sign of its own': (text) => `/${Buffer.from(text).toString('base64')}`,
    'base64 behind two': (text) => `v/${Buffer.from(text).toString('base64')}`,
    'base64 behind three': (text) => `is/${Buffer.from(text).toString('base64')}`,
    'base64 of URLs': (text) => Buffer.from(text).toString('base64url'),
    'base64 in lines': (text) => Buffer.from(text).toString('base64').replaceAll(/.{19}/g, '$&\r\n'),
    'base64 of JSON': (text) => Buffer.from(JSON.stringify({ text })).toString('base64'),
    'hexadecimal digits': (text) => Buffer.from(text).toString('hex'),
};

function unit(text: string, at: number, write: (code: number) => string): string {
    return write(text.charCodeAt(at));
}

function hex(code: number, digits: number): string {
    return code.toString(16).padStart(digits, '0');
}

/** Pieces of a text that would give it away, in each of the writings: by their middle, so that it does not matter what stands around them. */
export function traces(secret: string): readonly string[] {
    const middle = secret.slice(2, -2);
    const inBase64 = [0, 1, 2].map((shift) =>
        Buffer.from(`${'x'.repeat(shift)}${secret}`)
            .toString('base64')
            .slice(4, -4),
    );
    return [
        ...Object.values(WRITINGS).map((write) => write(middle)),
        ...inBase64,
        ...inBase64.map((one) => one.replaceAll('+', '-').replaceAll('/', '_')),
    ];
}
