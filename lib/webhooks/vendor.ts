import { ScanwireError } from '../scanwire-error.ts';

/** How messages name who sends them. */
export interface Vendor {
    /** Without the dash that follows, for example `X-Vendor`. */
    readonly headerPrefix: string;
    readonly userAgent: string;
}

/**
 * Both names from the vendor's own: `Acme` gives the header prefix `X-Acme` and the user agent `Acme Webhook Data Exporter`.
 *
 * @throws ScanwireError `MISCONFIGURED` when the name cannot stand in a header name.
 */
export function vendorNamed(name: string): Vendor {
    if (!/^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$/.test(name) || name.length > 40) {
        throw new ScanwireError('MISCONFIGURED', 'vendor must be 1 to 40 letters and digits, with single dashes between them', {
            field: 'vendor',
        });
    }

    return { headerPrefix: `X-${name}`, userAgent: `${name} Webhook Data Exporter` };
}

export const DEFAULT_VENDOR: Vendor = vendorNamed('Vendor');
