/**
 * What every refused request is told. Missing, wrong, malformed and revoked keys and an invalid licence all get this one
 * sentence, so that nobody learns which of them it was.
 */
export const DENIAL = 'Access needs a valid licence on the server and a valid API key in the header named token';
