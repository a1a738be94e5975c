/* The digest of blocks (bytes_blocks.ml). Of each block it takes NH (the hash of UMAC, RFC 4418) over pairs of
   64-bit words, twice: the second time with the key words two further on. Of these results, and of how many
   blocks there are, it takes the values of two polynomials over the field of 2^61 - 1 elements. */

#include <stdint.h>
#include <string.h>
#include <caml/mlvalues.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a word of a block begins with its lowest byte"
#endif

typedef unsigned __int128 wide;
enum { WORDS = 512 };  /* of a block */
static const uint64_t prime = (UINT64_C(1) << 61) - 1;
static uint64_t keys[WORDS + 2], points[2];

/* Numbers that look random, and are the same in every process: the generator splitmix64. */
static uint64_t drawn(uint64_t number) {
  uint64_t z = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

value digest_keys(value unit) {
  for (int i = 0; i < WORDS + 2; i++) keys[i] = drawn(i);
  for (int i = 0; i < 2; i++) points[i] = drawn(WORDS + 2 + i) % prime;
  return Val_unit;
}

static uint64_t step(uint64_t sum, uint64_t point, uint64_t number) {
  wide next = (wide)sum * point + number;  /* sum < prime, number < 2^32 */
  uint64_t low = ((uint64_t)next & prime) + (uint64_t)(next >> 61);
  return low >= prime ? low - prime : low;
}

/* The block is 4,096 bytes, the sums are two words: each polynomial goes on by the 8 halves of the words. */
value digest_block(value block, value sums) {
  uint64_t sum[2];
  wide hash[2] = { 0, 0 };
  memcpy(sum, Bytes_val(sums), sizeof sum);
  for (int i = 0; i < WORDS; i += 2) {
    uint64_t pair[2];
    memcpy(pair, Bytes_val(block) + 8 * i, sizeof pair);
    hash[0] += (wide)(pair[0] + keys[i]) * (pair[1] + keys[i + 1]);
    hash[1] += (wide)(pair[0] + keys[i + 2]) * (pair[1] + keys[i + 3]);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 8; j++)
      sum[i] = step(sum[i], points[i], (uint32_t)(hash[j / 4] >> (32 * (j % 4))));
  memcpy(Bytes_val(sums), sum, sizeof sum);
  return Val_unit;
}
