export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { issueLicense, type LicenseKeyPair, newLicenseKeyPair } from './issue-license.ts';
export { alwaysLicensed, type LicenseSource, type SignedLicense, type SignedLicenseOptions, signedLicense } from './license-source.ts';
export { inspectLicense, type License, type LicenseStatus } from './verify-license.ts';
