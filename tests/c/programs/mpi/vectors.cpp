// In C++: vectors as buffers, a template that knows each type's datatype, numeric algorithms.
/*
 * ranks: 4
 * expected:
 *   sum of int: 120
 *   sum of double: 60.0
 *   longest word: recursion
 *   16 squares: 0 1 4 9 16 25 36 49 64 81 100 121 144 169 196 225
 */
#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

template <typename T> MPI_Datatype type_of();
template <> MPI_Datatype type_of<int>() { return MPI_INT; }
template <> MPI_Datatype type_of<double>() { return MPI_DOUBLE; }
template <> MPI_Datatype type_of<char>() { return MPI_CHAR; }

template <typename T> T total(const std::vector<T> &part) {
    T mine = std::accumulate(part.begin(), part.end(), T()), all;
    MPI_Allreduce(&mine, &all, 1, type_of<T>(), MPI_SUM, MPI_COMM_WORLD);
    return all;
}

template <typename T> std::vector<T> gather(const std::vector<T> &part) {
    int size, count = static_cast<int>(part.size());
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> counts(size), starts(size);
    MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::partial_sum(counts.begin(), counts.end() - 1, starts.begin() + 1);
    std::vector<T> all(starts.back() + counts.back());
    MPI_Allgatherv(part.data(), count, type_of<T>(), all.data(), counts.data(), starts.data(), type_of<T>(),
                   MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<int> numbers(4), squares;
    std::iota(numbers.begin(), numbers.end(), 4 * rank);
    std::vector<double> halves(numbers.begin(), numbers.end());
    for (double &half : halves) half /= 2;
    for (int number : numbers) squares.push_back(number * number);
    const std::vector<std::string> words{"stack", "recursion", "heap", "list"};
    const std::string &word = words[rank % words.size()];
    auto sum = total(numbers);
    auto sum_of_halves = total(halves);
    auto letters = gather(std::vector<char>(word.c_str(), word.c_str() + word.size() + 1));
    auto all = gather(squares);
    if (rank == 0) {
        std::string longest;
        for (std::size_t at = 0; at < letters.size(); at += std::string(&letters[at]).size() + 1)
            if (std::string(&letters[at]).size() > longest.size()) longest = &letters[at];
        std::printf("sum of int: %d\nsum of double: %.1f\n", sum, sum_of_halves);
        std::printf("longest word: %s\n%zu squares:", longest.c_str(), all.size());
        for (int square : all) std::printf(" %d", square);
        std::printf("\n");
    }
    MPI_Finalize();
}
