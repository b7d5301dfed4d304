// Integer factoring with BigInt: trial division, Miller-Rabin, and Lenstra's elliptic curve method on Montgomery curves
// (Montgomery 1987; parametrisation by Suyama). One curve is one unit of work: its number is all the state there is.

const SMALL_PRIMES = sieve(200_000);

export function sieve(limit) {
  const composite = new Uint8Array(limit + 1);
  const primes = [];
  for (let p = 2; p <= limit; p++) {
    if (composite[p] === 1) continue;
    primes.push(p);
    for (let q = p * p; q <= limit; q += p) composite[q] = 1;
  }
  return primes;
}

export function power(base, exponent, modulus) {
  let result = 1n;
  let b = base % modulus;
  for (let e = exponent; e > 0n; e >>= 1n) {
    if (e & 1n) result = (result * b) % modulus;
    b = (b * b) % modulus;
  }
  return result;
}

function gcd(a, b) {
  let [x, y] = [a < 0n ? -a : a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

/** Miller-Rabin with the first 24 primes as bases: proven below 3.3e24, error far below 4^-24 above. */
export function isProbablePrime(n) {
  if (n < 2n) return false;
  const bases = SMALL_PRIMES.slice(0, 24).map(BigInt);
  for (const p of bases) if (n % p === 0n) return n === p;
  let d = n - 1n;
  let twos = 0;
  for (; (d & 1n) === 0n; d >>= 1n) twos++;
  return bases.every((a) => {
    let x = power(a, d, n);
    if (x === 1n || x === n - 1n) return true;
    for (let i = 1; i < twos; i++) {
      x = (x * x) % n;
      if (x === n - 1n) return true;
    }
    return false;
  });
}

/** Takes out the prime factors below 100,000. */
export function trialDivision(n) {
  const factors = [];
  let rest = n;
  for (const small of SMALL_PRIMES) {
    if (small > 100_000) break;
    const p = BigInt(small);
    while (rest % p === 0n) {
      factors.push(p);
      rest /= p;
    }
  }
  return { factors, rest };
}

/** Bounds grow with the number of curves spent (GMP-ECM's table for 15, 20 and 25 digits). */
const LEVELS = [
  { untilCurve: 25, b1: 2_000 },
  { untilCurve: 115, b1: 11_000 },
  { untilCurve: Infinity, b1: 50_000 },
];

/** Runs curve number `curve` (0, 1, 2, ...) on composite `n`. A proper factor, or null. */
export function runCurve(n, curve) {
  const { b1 } = LEVELS.find((level) => curve < level.untilCurve);
  const sigma = BigInt(curve + 6);
  const start = suyama(n, sigma);
  if (start.factor !== undefined) return start.factor > 1n && start.factor < n ? start.factor : null;
  const { a24 } = start;

  const double = ([x, z]) => {
    const s = (x + z) ** 2n % n;
    const d = (x - z) ** 2n % n;
    const t = s - d;
    return [(s * d) % n, (t * (d + a24 * t)) % n];
  };
  /** P + Q, given P - Q. */
  const add = ([xp, zp], [xq, zq], [xd, zd]) => {
    const u = ((xp - zp) * (xq + zq)) % n;
    const v = ((xp + zp) * (xq - zq)) % n;
    return [(zd * ((u + v) ** 2n % n)) % n, (xd * ((u - v) ** 2n % n)) % n];
  };
  const multiply = (k, p) => {
    let [r0, r1] = [p, double(p)];
    for (const bit of k.toString(2).slice(1)) {
      const sum = add(r0, r1, p);
      if (bit === '1') [r0, r1] = [sum, double(r1)];
      else [r0, r1] = [double(r0), sum];
    }
    return r0;
  };

  // Stage 1: multiply by every prime power up to B1.
  let q = start.point;
  for (const p of SMALL_PRIMES) {
    if (p > b1) break;
    let k = p;
    while (k * p <= b1) k *= p;
    q = multiply(k, q);
  }
  let g = gcd(q[1], n);
  if (g > 1n) return g < n ? g : null;

  // Stage 2: one more prime between B1 and 50 B1 (capped by the sieve), walked in steps of 2 x 105 with baby steps.
  g = gcd(stageTwo(n, q, b1, { double, add, multiply }), n);
  return g > 1n && g < n ? g : null;
}

/** Point and curve constant (a + 2) / 4 for sigma; `factor` when an inverse does not exist, which is luck. */
function suyama(n, sigma) {
  const u = (sigma * sigma - 5n) % n;
  const v = (4n * sigma) % n;
  const x = u ** 3n % n;
  const z = v ** 3n % n;
  const denominator = (16n * x * v) % n;
  const { g, inverse } = invert(denominator, n);
  if (g !== 1n) return { factor: g };
  const a24 = ((((v - u) ** 3n % n) * (3n * u + v)) % n) * inverse;
  return { point: [x, z], a24: ((a24 % n) + n) % n };
}

function invert(a, n) {
  let [r0, r1] = [n, ((a % n) + n) % n];
  let [t0, t1] = [0n, 1n];
  while (r1 !== 0n) {
    const quotient = r0 / r1;
    [r0, r1] = [r1, r0 - quotient * r1];
    [t0, t1] = [t1, t0 - quotient * t1];
  }
  return { g: r0, inverse: ((t0 % n) + n) % n };
}

/** Product over primes p = kD +- j of (x_kD z_j - x_j z_kD): holds a factor when p is the missing prime. */
function stageTwo(n, q, b1, { double, add, multiply }) {
  const D = 210;
  const limit = Math.min(50 * b1, 200_000);
  const q2 = double(q);
  const baby = [undefined, q, q2, add(q2, q, q)];
  for (let j = 5; j <= D / 2; j += 2) baby[j] = add(baby[j - 2], q2, baby[j - 4]);
  const giantStep = multiply(D, q);
  let k = Math.floor(b1 / D);
  let previous = multiply(Math.max(1, k - 1) * D, q);
  let giant = multiply(k * D, q);
  let product = 1n;
  for (const p of SMALL_PRIMES) {
    if (p <= b1) continue;
    if (p > limit) break;
    while (p > k * D + D / 2) {
      [previous, giant] = [giant, add(giant, giantStep, previous)];
      k++;
    }
    const j = baby[Math.abs(p - k * D)];
    if (j !== undefined) product = (product * (giant[0] * j[1] - j[0] * giant[1])) % n;
  }
  return product;
}
