export { issueLicense, type LicenseKeyPair, newLicenseKeyPair } from './issue-license.ts';
export { type SignedLicense, type SignedLicenseOptions, signedLicense } from './signed-license.ts';
export type { License, LicenseSource } from './verify-license.ts';
export { alwaysLicensed, inspectLicense, type LicenseStatus } from './verify-license.ts';
