import Joi from 'joi';
import { checked } from '../checked.ts';

/** Whose data is sent: the name that header names and the User-Agent carry. */
export interface Vendor {
    /** `X-Vendor`, without the dash that follows. */
    readonly headerPrefix: string;
    readonly userAgent: string;
}

const nameSchema = Joi.string()
    .pattern(/^[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*$/, 'letters, digits and single dashes')
    .max(40);

/** @param name Letters, digits and single dashes. @throws ScanwireError `MISCONFIGURED`. */
export function vendorNamed(name = 'Vendor'): Vendor {
    const vendor = checked(nameSchema, name, { subject: 'vendor', code: 'MISCONFIGURED' });
    return { headerPrefix: `X-${vendor}`, userAgent: `${vendor} Webhook Data Exporter` };
}
