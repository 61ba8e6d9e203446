export { alwaysLicensed } from './always-licensed.ts';
export { inspectLicense, type LicenseStatus } from './inspect-license.ts';
export { issueLicense, type LicenseKeyPair, newLicenseKeyPair } from './issue-license.ts';
export type { LicenseSource } from './license.ts';
export { type SignedLicense, type SignedLicenseOptions, signedLicense } from './signed-license.ts';
export type { License } from './verify-license.ts';
