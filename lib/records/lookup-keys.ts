import { canonicalAddress } from '../inventory/address.ts';
import { IP_PATTERN } from './address-patterns.ts';

/** What addresses are compared by: one address has one text, however it was written. */
export function addressKey(ip: string): string {
    return canonicalAddress(ip).address;
}

/** What hosts are compared by: names without regard to case and to the dot of the root, addresses as addresses. */
export function hostKey(host: string): string {
    return IP_PATTERN.test(host) ? addressKey(host) : host.toLowerCase().replace(/\.$/, '');
}
